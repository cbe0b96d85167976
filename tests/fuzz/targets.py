"""What is fuzzed: each target takes bytes and must end in a result or a WheelslimError."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from builders import fatbin, zip_bytes
from builders.library import CudaLibrary, Embedded
from builders.wheel import Wheel
from wheelslim.architecture import ComputeCapability
from wheelslim.archive.conda import CondaArtifact
from wheelslim.archive.record import Record
from wheelslim.archive.zip_reader import read_zip
from wheelslim.edition import PruneOptions
from wheelslim.errors import VerifyError, WheelslimError
from wheelslim.fatbin.payload import read_payload
from wheelslim.fatbin.reader import read_tiling
from wheelslim.kernels.names import cubin_kernels
from wheelslim.library import read_library
from wheelslim.pieces import stream, total_size
from wheelslim.pipeline import prune
from wheelslim.plan import Planner, Request, plan_entries
from wheelslim.proof.library import verify_library
from wheelslim.slim import slim_library
from wheelslim.source import Source
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
REQUEST = Request(parse_targets("sm_86"))
DEVICES = (ComputeCapability(8, 6),)


class PromiseBrokenError(AssertionError):
    """A slimmed library that does not verify: worse than a crash."""


@dataclass(frozen=True)
class Target:
    """A name for the command line, what runs, and seeds to mutate."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


@contextmanager
def source_of(data: bytes) -> Iterator[Source]:
    """Put ``data`` into a file in memory."""
    fd = (
        os.memfd_create("fuzz") if hasattr(os, "memfd_create") else os.open(SCRATCH, os.O_TMPFILE | os.O_RDWR)
    )
    try:
        os.write(fd, data)
        yield Source.of_file(fd)
    finally:
        os.close(fd)


def _containers() -> tuple[bytes, ...]:
    words = ("sm_80", "sm_86", "sm_90a", "compute_90")
    plain = fatbin.container([fatbin.entry(word, size=64) for word in words])
    packed = fatbin.container(
        [fatbin.entry(word, size=64, codec=codec) for word in words for codec in ("zstd", "lz4")]
    )
    joined = fatbin.container([fatbin.concatenated(words[:3], size=64), fatbin.entry("sm_86", size=64)])
    return plain, packed, joined, fatbin.container([])


def run_fatbin(data: bytes) -> None:
    """Tiling, plan and payloads of a section."""
    with source_of(data) as source:
        for container in read_tiling(source, 0).containers:
            plan_entries(container.entries, REQUEST)
            for entry in container.entries:
                try:
                    read_payload(source, entry, 1 << 20)
                except WheelslimError:
                    continue


def run_library(data: bytes) -> None:
    """ELF headers, relocations, wrappers and containers."""
    with source_of(data) as source:
        read_library(source)


def run_slim(data: bytes) -> None:
    """A whole library: either it stays, or what is written keeps the promises."""
    with source_of(data) as source:
        slimmed = slim_library(source, Planner(REQUEST))
        if slimmed.pieces is None:
            return
        if total_size(slimmed.pieces) > len(data) + (1 << 16):
            raise PromiseBrokenError(f"grown from {len(data)} to {total_size(slimmed.pieces)}")
        with source_of(b"".join(stream(slimmed.pieces, source))) as written:
            try:
                verify_library(source, written, DEVICES)
            except VerifyError as error:
                raise PromiseBrokenError(str(error)) from error


def run_record(data: bytes) -> None:
    """RECORD, read and written."""
    record = Record.parse(data, "demo-1.0.dist-info/RECORD")
    record.rewritten({}, ())


def run_zip(data: bytes) -> None:
    """The zip directory and the local headers."""
    with source_of(data) as source:
        read_zip(source)


def run_wheel(data: bytes) -> None:
    """A whole wheel through the pipeline."""
    _prune(data, "demo-1.0-py3-none-any.whl")


def run_conda(data: bytes) -> None:
    """A whole conda package read."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "demo-1.0-0.conda"
        path.write_bytes(data)
        with CondaArtifact(path, Path(folder)) as artifact:
            for _ in artifact.walk(lambda *_: True):
                pass


def _prune(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        out = Path(folder) / "out"
        try:
            report = prune(path, PruneOptions(REQUEST, output_dir=out, jobs=1))
        except VerifyError as error:
            raise PromiseBrokenError(str(error)) from error
        finally:
            left = sorted(one.name for one in out.iterdir()) if out.exists() else []
        if left != ([Path(report.output).name] if report.output else []):
            raise PromiseBrokenError(f"litter: {left}")


def run_cubin(data: bytes) -> None:
    """Kernel names of a cubin."""
    cubin_kernels(data)


def run_targets(data: bytes) -> None:
    """The grammar of ``--arch``."""
    parse_targets(data.decode("utf-8", "replace"), detect=lambda: ())


def _libraries() -> list[bytes]:
    containers = _containers()
    specs = (
        CudaLibrary(containers),
        CudaLibrary(containers, relocations="relr", packed=True),
        CudaLibrary(containers, relocatable=containers, one_segment=True, align=0x200000),
        CudaLibrary(containers, unreferenced=frozenset({1}), inside=frozenset({2}), moved_tables=True),
        CudaLibrary(containers, embedded=(Embedded(".rodata", containers, pointers=True),)),
    )
    big = fatbin.container([fatbin.entry("sm_90", size=9000), fatbin.entry("sm_86", size=64)])
    return [*(spec.build().data for spec in specs), CudaLibrary((big, *containers, big)).build().data]


def _wheels() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        files = {"demo/lib.so": _libraries()[0], "demo/__init__.py": b"x = 1\n"}
        return [Wheel(files, name="demo", tag="py3-none-any").write(Path(folder)).read_bytes()]


def _zips() -> list[bytes]:
    members = (zip_bytes.RawMember(b"a.py", b"x = 1\n" * 9), zip_bytes.RawMember(b"b/c.so", bytes(300)))
    return [zip_bytes.zip_bytes(members), *_wheels()]


def _condas() -> list[bytes]:
    from builders.conda import CondaPackage, Item

    with tempfile.TemporaryDirectory() as folder:
        package = CondaPackage((Item("lib/libdemo.so", _libraries()[0]), Item("lib/text.txt", b"hello")))
        return [package.write(Path(folder)).read_bytes()]


def _records() -> list[bytes]:
    text = b'demo/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\n"a,b.py",,\r\n'
    return [text + b"demo-1.0.dist-info/RECORD,,\r\n"]


def _cubins() -> list[bytes]:
    corpus = Path(__file__).parents[1] / "corpus" / "lib" / "plain.so"
    seeds: list[bytes] = []
    with source_of(corpus.read_bytes()) as source:
        for part in read_library(source).device:
            view = source.part(part.section.sh_offset, part.section.sh_size)
            seeds.extend(
                read_payload(view, entry)
                for container in part.tiling.containers
                for entry in container.entries
            )
    return seeds[:4]


TARGETS = {
    target.name: target
    for target in (
        Target("fatbin", run_fatbin, lambda: [b"".join(_containers()), *_containers()]),
        Target("library", run_library, _libraries),
        Target("slim", run_slim, _libraries),
        Target("record", run_record, _records),
        Target("zip", run_zip, _zips),
        Target("wheel", run_wheel, _wheels),
        Target("conda", run_conda, _condas),
        Target("cubin", run_cubin, _cubins),
        Target("targets", run_targets, lambda: [b"sm_86, 8.0+PTX;compute_90 rtx-4090 native"]),
    )
}
