"""The programs that take a slimmed wheel: installers, checkers, and readers of zip files."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from judges.programs import run
from judges.strict_zip import strict_zip_faults
from reliability.chain_tools import Program, ToolError, modules, plain, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ASKED = {"unzip": "-v", "7z": "i"}
"""What makes a program say its version, other than ``--version``."""

QUIET = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")


@dataclass(frozen=True)
class WheelTool:
    """``take`` raises ToolError where the tool refuses the wheel, or makes something else of it."""

    label: str
    program: Program
    take: Callable[[Path, Path], None]


def wheel_tools(venvs: Path | None) -> Iterator[WheelTool]:
    """Every tool that is at hand."""
    for tool in modules("pip", venvs):
        yield WheelTool("pip install, show -f, uninstall", tool, _pip(tool))
    for tool in programs("uv", venvs):
        yield WheelTool("uv pip install", tool, _uv(tool))
    for tool in modules("installer", venvs):
        yield WheelTool("installer (poetry's)", tool, _installer(tool))
    for tool in modules("wheel", venvs):
        yield WheelTool("wheel unpack, wheel pack", tool, _unpack(tool))
        if number(tool) >= (0, 40):
            yield WheelTool("wheel tags --build", tool, _tags(tool))
    for name, options in (
        ("twine", ("check",)),
        ("check-wheel-contents", ()),
        ("pydistcheck", ()),
        ("auditwheel", ("show",)),
        ("unzip", ("-tqq",)),
        ("bsdtar", ("-tf",)),
        ("7z", ("t",)),
    ):
        for tool in programs(name, venvs, _ASKED.get(name, "--version")):
            yield WheelTool(" ".join([name, *options]), tool, _command(tool, *options))
    python = Program("zipfile", ".".join(map(str, sys.version_info[:3])), (sys.executable,))
    yield WheelTool("python -m zipfile -t", python, _command(python, "-m", "zipfile", "-t"))
    yield WheelTool(
        "one archive front to back and by its directory, as PyPI asks",
        Program("judges.strict_zip", "1", ()),
        _strict,
    )


def number(tool: Program) -> tuple[int, ...]:
    """The version as numbers."""
    return tuple(int(part) for part in tool.version.split(".") if part.isdecimal())


def _call(command: list[str], cwd: Path | None = None) -> str:
    done = run(command, cwd=cwd, env={"PYTHONPATH": "", "PYTHONWARNINGS": "ignore"})
    if done.returncode != 0:
        raise ToolError(plain(f"exit {done.returncode}: {(done.stdout + done.stderr)[-400:]}"))
    return done.stdout


def _command(tool: Program, *options: str) -> Callable[[Path, Path], None]:
    def take(wheel: Path, _scratch: Path) -> None:
        _call([*tool.command, *options, str(wheel)])

    return take


def _strict(wheel: Path, _scratch: Path) -> None:
    faults = strict_zip_faults(wheel)
    if faults:
        raise ToolError("; ".join(faults))


def _site_packages(venv: Path) -> Path:
    return next((venv / "lib").glob("python*/site-packages"))


def _pip(tool: Program) -> Callable[[Path, Path], None]:
    def take(wheel: Path, scratch: Path) -> None:
        python = scratch / "venv/bin/python"
        _call([*tool.command, "-m", "venv", "--without-pip", str(scratch / "venv")])
        pip = [*tool.command, "-m", "pip", "--python", str(python)]  # from 22.3 on
        _call([*pip, "install", *QUIET, "--no-compile", str(wheel)])
        compare(wheel, _site_packages(scratch / "venv"))
        name = wheel.name.partition("-")[0]
        shown = _call([*pip, "show", "-f", name])
        if "wheelslim.json" not in shown:
            raise ToolError("pip show -f does not name the stamp")
        _call([*pip, "uninstall", "--yes", "--quiet", name])
        left = [path.name for path in _site_packages(scratch / "venv").rglob("*") if path.is_file()]
        if [name for name in left if not name.endswith((".pth", ".py"))]:
            raise ToolError(f"uninstall left {len(left)} files")

    return take


def _uv(tool: Program) -> Callable[[Path, Path], None]:
    def take(wheel: Path, scratch: Path) -> None:
        options = ["--quiet", "--no-deps", "--no-index", "--offline", "--cache-dir", str(scratch / "cache")]
        target = scratch / "target"
        _call([*tool.command, "pip", "install", *options, "--python", sys.executable,
               "--target", str(target), str(wheel)])  # fmt: skip
        compare(wheel, target)

    return take


def _installer(tool: Program) -> Callable[[Path, Path], None]:
    def take(wheel: Path, scratch: Path) -> None:
        options = ["--destdir", str(scratch / "dest"), "--no-compile-bytecode"]
        options += ["--validate-record", "all"] if number(tool) >= (1,) else []
        _call([*tool.command, "-m", "installer", *options, str(wheel)])
        site = next((scratch / "dest").rglob("*.dist-info")).parent
        compare(wheel, site)

    return take


def _unpack(tool: Program) -> Callable[[Path, Path], None]:
    def take(wheel: Path, scratch: Path) -> None:
        _call([*tool.command, "-m", "wheel", "unpack", "--dest", str(scratch / "tree"), str(wheel)])
        tree = next((scratch / "tree").iterdir())
        compare(wheel, tree)
        (scratch / "packed").mkdir()
        _call([*tool.command, "-m", "wheel", "pack", "--dest", str(scratch / "packed"), str(tree)])
        packed = next((scratch / "packed").iterdir())
        if packed.name != wheel.name:
            raise ToolError(f"wheel pack gives it another name: {packed.name}")

    return take


def _tags(tool: Program) -> Callable[[Path, Path], None]:
    def take(wheel: Path, scratch: Path) -> None:
        copy = scratch / wheel.name
        shutil.copyfile(wheel, copy)
        _call([*tool.command, "-m", "wheel", "tags", "--build", "7", "--remove", str(copy)])
        (named,) = scratch.glob("*.whl")
        if "-7-" not in named.name:
            raise ToolError(f"wheel tags calls it {named.name}")
        with zipfile.ZipFile(named) as archive:
            if archive.testzip() is not None:
                raise ToolError("wheel tags left a damaged archive")

    return take


def compare(wheel: Path, site: Path) -> None:
    """Every file of the wheel, RECORD apart, has to be installed with the same bytes."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            name = info.filename
            if info.is_dir() or name.endswith(".dist-info/RECORD") or ".data/" in name:
                continue
            with archive.open(info) as stream:
                wanted = _digest(stream)
            path = site / name
            if not path.is_file():
                raise ToolError(f"{name} was not installed")
            with path.open("rb") as file:
                if _digest(file) != wanted:
                    raise ToolError(f"{name} was installed with other bytes")


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def attempt(tool: WheelTool, wheel: Path) -> str:
    """What the tool says of the wheel; nothing where it takes it."""
    with tempfile.TemporaryDirectory(prefix="chain-") as scratch:
        try:
            tool.take(wheel, Path(scratch))
        except ToolError as error:
            return str(error)
    return ""
