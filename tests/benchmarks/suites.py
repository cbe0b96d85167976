"""What is compared with what, on which input."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.child import Step
from builders.conda_tree import add_info
from builders.streamed import StreamedLibrary
from builders.streamed_wheel import write_wheel
from real.fetch import WHEELS, find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("WHEELSLIM_TEST_CACHE", "~/.cache/wheelslim/wheels")).expanduser()
ARCH = "sm_80,sm_86"
GIB = 1 << 30
MIB = 1 << 20

_WHEELSLIM = (sys.executable, "-m", "wheelslim")
_WHEEL = (sys.executable, "-m", "wheel")
_CPH = (sys.executable, "-W", "ignore", "-m", "conda_package_handling.cli")


@dataclass(frozen=True)
class Room:
    """The directories of one run: scratch space, and where the result goes."""

    scratch: Path
    output: Path


@dataclass(frozen=True)
class Contender:
    """One way to do it. ``shown`` is the command line for people; ``scale`` is its place on an axis.

    The output is compared with what zlib makes of it at level 6 where ``wheel``, the input, is given.
    """

    name: str
    shown: str
    steps: Callable[[Room], tuple[Step, ...]]
    scale: float | None = None
    wheel: Path | None = None


@dataclass(frozen=True)
class Suite:
    """Ways that are measured in turn. ``sizes`` says how large the input is, in words."""

    key: str
    title: str
    contenders: tuple[Contender, ...]
    sizes: str = ""
    facts: dict[str, int] = field(default_factory=dict)


KEYS = ("torch", "cublas", "cupy-cuda13x", "inspect", "conda", "bytes", "containers", "start")
QUICK = ("cupy-cuda13x", "containers", "start")


def suite(key: str, directory: Path, full: bool) -> Suite:
    """Make a suite and its inputs, which go into ``directory``.

    Raises:
        SystemExit: an input is not in the cache.
    """
    makers = {
        "inspect": _inspect, "conda": _conda, "bytes": _bytes, "containers": _containers, "start": _start,
    }  # fmt: skip
    if key in makers:
        return makers[key](directory, full)
    return _wheel(key)


def _cached(key: str) -> Path:
    path = find(key, CACHE)
    if path is None:
        raise SystemExit(f"{key} is not in {CACHE}: python tests/real/fetch.py {key}")
    return path


def _prune(name: str, path: Path, *options: str, scale: float | None = None) -> Contender:
    def steps(room: Room) -> tuple[Step, ...]:
        places = ("--output-dir", str(room.output), "--scratch-dir", str(room.scratch))
        command = (*_WHEELSLIM, "prune", "--quiet", "--arch", ARCH, *options, *places, str(path))
        return (Step(command, room.output),)

    shown = " ".join(("wheelslim prune --arch", ARCH, *options, path.name))
    return Contender(name, shown, steps, scale)


def _wheel(key: str) -> Suite:
    path = _cached(key)

    def unpack_pack(room: Room) -> tuple[Step, ...]:
        project, version = path.name.split("-")[:2]
        tree = room.scratch / f"{project}-{version}"
        return (
            Step((*_WHEEL, "unpack", "--dest", str(room.scratch), str(path)), room.scratch),
            Step((*_WHEEL, "pack", "--dest-dir", str(room.output), str(tree)), room.scratch),
        )

    def unzip_zip(room: Room) -> tuple[Step, ...]:
        return (
            Step(("unzip", "-q", str(path), "-d", str(room.scratch)), room.scratch),
            Step(("zip", "-q", "-r", str(room.output / path.name), "."), room.scratch),
        )

    def copy_hash(room: Room) -> tuple[Step, ...]:
        copy = room.output / path.name
        return Step(("cp", str(path), str(copy)), room.output), Step(("sha256sum", str(copy)), room.output)

    name = WHEELS[key]
    with zipfile.ZipFile(path) as archive:
        libraries = [info for info in archive.infolist() if ".so" in info.filename]
        installed = sum(info.file_size for info in archive.infolist())
    return Suite(
        key,
        f"{name.project} {name.version}",
        (
            _prune("wheelslim prune, fast", path, "--compression", "fast"),
            replace(_prune("wheelslim prune, default", path), wheel=path),
            _prune("wheelslim prune, max", path, "--compression", "max"),
            Contender("wheel unpack + wheel pack", "wheel unpack … && wheel pack …", unpack_pack),
            Contender("unzip + zip", "unzip … && zip -r …", unzip_zip),
            Contender("cp + sha256sum", "cp … && sha256sum …", copy_hash),
        ),
        f"{path.stat().st_size / MIB:,.0f} MiB, {installed / MIB:,.0f} installed",
        {"largest library": max(info.file_size for info in libraries), "file": path.stat().st_size},
    )


def _inspect(directory: Path, full: bool) -> Suite:
    key, member = (
        ("torch", "libtorch_cuda.so") if full else ("cupy-cuda13x", "cub.cpython-311-x86_64-linux-gnu.so")
    )
    library = directory / member
    with zipfile.ZipFile(_cached(key)) as archive:
        name = next(name for name in archive.namelist() if name.endswith(f"/{member}"))
        with archive.open(name) as source, library.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    ways: list[tuple[str, tuple[str, ...]]] = [("wheelslim inspect", (*_WHEELSLIM, "inspect", str(library)))]
    beside = CACHE.parent / "cuobjdump" / "cuobjdump"
    cuobjdump = shutil.which("cuobjdump") or (str(beside) if beside.exists() else None)
    if cuobjdump is not None:
        ways.append(("cuobjdump -lelf", (cuobjdump, "-lelf", str(library))))
    cubloaty = shutil.which("cubloaty")
    if cubloaty is not None:
        ways.append(("cubloaty", (cubloaty, str(library))))
    return Suite(
        "inspect",
        f"looking into {member}",
        tuple(_plain(name, command, library) for name, command in ways),
        f"{library.stat().st_size / MIB:,.0f} MiB",
    )


def _plain(name: str, command: tuple[str, ...], path: Path | None = None) -> Contender:
    def steps(room: Room) -> tuple[Step, ...]:
        return (Step(command, room.scratch),)

    return Contender(name, f"{name} {path.name}" if path else name, steps)


def _conda(directory: Path, full: bool) -> Suite:
    key = "cupy-cuda13x" if full else "torchvision"
    tree = directory / "tree"
    with zipfile.ZipFile(_cached(key)) as archive:
        archive.extractall(tree / "lib/python3.11/site-packages")
    add_info(tree, "demo")
    package = directory / "demo-1.0-h0_0.conda"

    def create(source: Path, output: Path) -> tuple[str, ...]:
        return (*_CPH, "create", str(source), package.name, "--out-folder", str(output))

    def extract_create(room: Room) -> tuple[Step, ...]:
        unpacked = room.scratch / "x"
        return (
            Step((*_CPH, "extract", str(package), "--dest", str(unpacked)), room.scratch),
            Step(create(unpacked, room.output), room.scratch),
        )

    def prepare(room: Room) -> tuple[Step, ...]:
        return (Step(create(tree, directory), directory),)

    _once(prepare(Room(directory, directory)))
    return Suite(
        "conda",
        f"a .conda of {WHEELS[key].project} {WHEELS[key].version}",
        (
            _prune("wheelslim prune", package),
            Contender("cph x + cph c", "cph x … && cph c …", extract_create),
        ),
        f"{package.stat().st_size / MIB:,.0f} MiB; zstd level 19 in both",
        {"largest library": max(path.stat().st_size for path in tree.rglob("*.so*"))},
    )


def _bytes(directory: Path, full: bool) -> Suite:
    contenders = []
    largest = 0
    for size in (1, 2, 4, 8) if full else (1,):
        library = StreamedLibrary(size * 1024, host=size * 128 * MIB, relocations=5000 * size)
        wheel = write_wheel(library, directory, f"large_{size}")
        contenders.append(_prune(f"{size} GiB", wheel, scale=library.size / GIB))
        largest = library.size
    return Suite(
        "bytes", "a library of many bytes", tuple(contenders),
        "1,024 containers of four cubins and 128 MiB of host code for each GiB", {"largest library": largest},
    )  # fmt: skip


def _containers(directory: Path, full: bool) -> Suite:
    return Suite(
        "containers", "a library of many containers", tuple(_counted(directory, full)),
        "four cubins of 512 bytes in each container, three further relocations for each",
    )  # fmt: skip


def _counted(directory: Path, full: bool) -> Iterator[Contender]:
    for count in (1_000, 10_000, 100_000) if full else (1_000, 10_000):
        library = StreamedLibrary(count, payload=512, relocations=3 * count)
        path = library.write(directory / f"lib_{count}.so")
        yield _prune(f"{count:,} containers, --dry-run", path, "--dry-run", scale=count)
        wheel = write_wheel(library, directory, f"many_{count}")
        yield _prune(f"{count:,} containers", wheel, scale=count)


def _start(directory: Path, full: bool) -> Suite:
    _ = directory, full
    return Suite(
        "start", "starting up",
        (
            _plain("wheelslim --help", (*_WHEELSLIM, "--help")),
            _plain("wheelslim prune --help", (*_WHEELSLIM, "prune", "--help")),
            _plain("python -c pass", (sys.executable, "-c", "pass")),
        ),
    )  # fmt: skip


def _once(steps: tuple[Step, ...]) -> None:
    from benchmarks.child import cost_of

    cost_of(steps, {}, steps[0].directory / "log")
