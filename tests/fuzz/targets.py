"""What is fuzzed: each target takes bytes and must end in a result or a WheelslimError."""

from __future__ import annotations

import bz2
import io
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from builders.wheel import Wheel
from fuzz import seeds
from wheelslim.architecture import ComputeCapability
from wheelslim.archive.conda import CondaArtifact
from wheelslim.archive.paths_json import PathsJson
from wheelslim.archive.record import Record
from wheelslim.archive.zip_reader import read_zip
from wheelslim.coverage import check
from wheelslim.edition import PruneOptions
from wheelslim.elf.strip import StripMode
from wheelslim.errors import UsageError, VerifyError, WheelslimError
from wheelslim.explanation import explain
from wheelslim.fatbin.payload import read_payload
from wheelslim.fatbin.reader import read_tiling
from wheelslim.groups.rules import make_drop_request
from wheelslim.inspection import inspect
from wheelslim.kernels.json_stream import JsonStreamError, objects
from wheelslim.kernels.names import cubin_kernels, ptx_kernels
from wheelslim.kernels.rules import KernelRules, compile_patterns
from wheelslim.library import read_library
from wheelslim.pieces import stream, total_size
from wheelslim.pipeline import prune
from wheelslim.plan import Planner, Request, plan_entries
from wheelslim.proof.declared import Declared
from wheelslim.proof.library import verify_library
from wheelslim.slim import DEFAULT_OPTIONS, LibraryOptions, slim_library
from wheelslim.source import Source
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
REQUEST = Request(parse_targets("sm_86"))
DEVICES = (ComputeCapability(8, 6),)
STRIP = LibraryOptions(strip=StripMode.ALL)
EMBEDDED = LibraryOptions(embedded=True, strip=StripMode.DEBUG)
WHEEL_NAME = "demo-1.0-py3-none-any.whl"


class PromiseBrokenError(AssertionError):
    """A slimmed library that does not verify, or litter beside the output: worse than a crash."""


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


def run_slim(data: bytes, options: LibraryOptions = DEFAULT_OPTIONS) -> None:
    """A whole library: either it stays, or what is written keeps the promises, and nothing more can go."""
    declared = Declared(strip=options.strip, embedded=options.embedded)
    with source_of(data) as source:
        slimmed = slim_library(source, Planner(REQUEST), options)
        if slimmed.pieces is None:
            return
        if total_size(slimmed.pieces) > len(data) + (1 << 16):
            raise PromiseBrokenError(f"grown from {len(data)} to {total_size(slimmed.pieces)}")
        with source_of(b"".join(stream(slimmed.pieces, source))) as written:
            try:
                verify_library(source, written, DEVICES, declared)
            except VerifyError as error:
                raise PromiseBrokenError(str(error)) from error


@cache
def _original() -> bytes:
    return seeds.original()


def run_proof(data: bytes) -> None:
    """Something that claims to be the slimmed copy of a library."""
    with source_of(_original()) as before, source_of(data) as after:
        verify_library(before, after, DEVICES, Declared(strip=StripMode.ALL, embedded=True))


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
    _prune(data, WHEEL_NAME, PruneOptions(REQUEST))


def run_whole(data: bytes) -> None:
    """A mutated library in a sound wheel, with everything on that changes libraries."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        wheel = Wheel({"demo/lib.so": data, "demo/x.h": b""}, name="demo", tag="py3-none-any")
        packed = wheel.write(Path(folder)).read_bytes()
    options = PruneOptions(
        REQUEST,
        EMBEDDED,
        drop=make_drop_request("headers,unused", (), None),
        kernels=KernelRules(drop=compile_patterns(["nothing"])),
        recompress=True,
    )
    _prune(packed, WHEEL_NAME, options)


def run_views(data: bytes) -> None:
    """Inspect, check and explain a library."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "lib.so"
        path.write_bytes(data)
        for view in (inspect, partial(check, targets="sm_86"), partial(explain, targets="sm_86")):
            try:
                view(path)
            except WheelslimError:
                continue


def run_conda(data: bytes) -> None:
    """A whole conda package read."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "demo-1.0-0.conda"
        path.write_bytes(data)
        with CondaArtifact(path, Path(folder)) as artifact:
            for _ in artifact.walk(lambda *_: True):
                pass


def run_tar(data: bytes) -> None:
    """A whole ``.tar.bz2`` package through the pipeline."""
    _prune(bz2.compress(data, 1), "demo-1.0-0.tar.bz2", PruneOptions(REQUEST))


def run_paths(data: bytes) -> None:
    """``info/paths.json``."""
    PathsJson.parse(data)


def run_trace(data: bytes) -> None:
    """A profile as JSON."""
    try:
        for _ in objects(io.BytesIO(data), "traceEvents"):
            pass
    except JsonStreamError as error:
        raise UsageError(str(error)) from error  # As ``read_used_kernels`` does.


def _prune(data: bytes, name: str, options: PruneOptions) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        out = Path(folder) / "out"
        fields = {**vars(options), "output_dir": out, "jobs": 1}
        report = None
        try:
            report = prune(path, PruneOptions(**fields))
        except VerifyError as error:
            raise PromiseBrokenError(str(error)) from error
        finally:
            left = sorted(one.name for one in out.iterdir()) if out.exists() else []
            if left != ([Path(report.output).name] if report is not None and report.output else []):
                raise PromiseBrokenError(f"litter: {left}")
            if path.read_bytes() != data:
                raise PromiseBrokenError("the input was changed") from None


def run_cubin(data: bytes) -> None:
    """Kernel names of a cubin, or of PTX."""
    cubin_kernels(data)
    ptx_kernels(data)


def run_targets(data: bytes) -> None:
    """The grammar of ``--arch``."""
    parse_targets(data.decode("utf-8", "replace"), detect=lambda: ())


TARGETS = {
    target.name: target
    for target in (
        Target("fatbin", run_fatbin, seeds.fatbins),
        Target("library", run_library, seeds.libraries),
        Target("slim", run_slim, seeds.libraries),
        Target("strip", partial(run_slim, options=STRIP), seeds.libraries),
        Target("embedded", partial(run_slim, options=EMBEDDED), seeds.embedding_libraries),
        Target("proof", run_proof, seeds.slimmed),
        Target("views", run_views, seeds.libraries),
        Target("record", run_record, seeds.records),
        Target("zip", run_zip, seeds.zips),
        Target("wheel", run_wheel, seeds.wheels),
        Target("whole", run_whole, seeds.libraries),
        Target("conda", run_conda, seeds.condas),
        Target("tar", run_tar, seeds.tars),
        Target("paths", run_paths, seeds.paths_jsons),
        Target("cubin", run_cubin, seeds.cubins),
        Target("trace", run_trace, seeds.traces),
        Target("targets", run_targets, lambda: [b"sm_86, 8.0+PTX;compute_90 rtx-4090 native"]),
    )
}
