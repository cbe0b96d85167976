"""What holds however large the input: bounded memory and scratch space, linear work, whatever the jobs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.child import Step, cost_of
from benchmarks.scratch import ScratchWatch
from builders.sources import source_of
from builders.streamed import StreamedLibrary
from builders.streamed_wheel import write_wheel
from builders.wheel import Member, Wheel
from wheelslim.plan import Planner, Request
from wheelslim.slim import slim_library
from wheelslim.source import Source
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[1]
ENVIRONMENT = {"PYTHONPATH": f"{TESTS.parent / 'src'}:{TESTS}"}
PRUNE = (sys.executable, "-m", "wheelslim", "prune", "--quiet", "--arch", "sm_80,sm_86")


@pytest.mark.parametrize("compression", ["fast", "default", "max"])
def test_the_number_of_jobs_does_not_show_in_the_output(compression: str, tmp_path: Path) -> None:
    wheel = write_wheel(StreamedLibrary(60, payload=1 << 15, host=5 << 20), tmp_path)
    digests = set()
    for jobs in ("1", "2", "7"):
        output = tmp_path / jobs
        command = (*PRUNE, "--compression", compression, "--jobs", jobs, "-o", str(output), str(wheel))
        cost_of([Step(command, tmp_path)], ENVIRONMENT, tmp_path / "log")
        digests.add(hashlib.sha256(next(output.iterdir()).read_bytes()).digest())
    assert len(digests) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="watches open files in /proc")
def test_a_library_of_2_gib_needs_little_memory_and_one_copy_of_scratch(tmp_path: Path) -> None:
    library = StreamedLibrary(2048, host=256 << 20, relocations=20_000)
    assert library.size > 2 << 30
    wheel = write_wheel(library, tmp_path)
    run, output = tmp_path / "run", tmp_path / "run" / "output"
    output.mkdir(parents=True)
    command = (*PRUNE, "--scratch-dir", str(run / "scratch"), "-o", str(output), str(wheel))
    with ScratchWatch(run, output) as watch:
        cost = cost_of([Step(command, tmp_path)], ENVIRONMENT, tmp_path / "log", watch.follow)
    assert cost.peak < 250e6
    assert 0.9 * library.size < watch.peak < library.size + (1 << 20), "the library itself, once"
    with zipfile.ZipFile(next(output.iterdir())) as archive:
        assert archive.testzip() is None


def test_scratch_is_no_more_than_the_largest_library_that_changes(tmp_path: Path) -> None:
    names = (("one", 40), ("two", 90), ("three", 30), ("four", 60))
    libraries = {
        f"demo/{name}.so": Member(b"".join(StreamedLibrary(count, payload=1 << 15).blocks()))
        for name, count in names
    }
    host = b"".join(StreamedLibrary(1, host=40 << 20).blocks()).replace(b"\0.nv_fatbin\0", b"\0.of_a_host\0")
    wheel = Wheel({**libraries, "demo/host.so": Member(host)}).write(tmp_path)
    run, output = tmp_path / "run", tmp_path / "run" / "output"
    output.mkdir(parents=True)
    command = (*PRUNE, "--jobs", "4", "--scratch-dir", str(run / "scratch"), "-o", str(output), str(wheel))
    with ScratchWatch(run, output) as watch:
        cost_of([Step(command, tmp_path)], ENVIRONMENT, tmp_path / "log", watch.follow)
    largest = max(len(member.data) for member in libraries.values())
    assert len(host) > 2 * largest
    assert watch.peak <= largest + (1 << 16)


def test_members_that_do_not_change_are_carried_through_whatever_they_hold(tmp_path: Path) -> None:
    """Their compressed bytes are broken here, which nobody notices who does not inflate them."""
    library = b"".join(StreamedLibrary(4, payload=1 << 12).blocks())
    text = b"".join(b"%d: text that deflates\n" % number for number in range(20_000))
    original = Wheel({"demo/lib.so": library, "demo/data.txt": text, "demo/more.txt": text[:-1]}).write(
        tmp_path
    )
    data = bytearray(original.read_bytes())
    with zipfile.ZipFile(original) as archive:
        for name in ("demo/data.txt", "demo/more.txt"):
            info = archive.getinfo(name)
            middle = info.header_offset + 30 + len(name) + info.compress_size // 2
            data[middle : middle + 40] = bytes(40)
    broken = tmp_path / "in" / original.name
    broken.parent.mkdir()
    broken.write_bytes(data)
    with zipfile.ZipFile(broken) as archive:
        assert archive.testzip() == "demo/data.txt"

    def pruned(*options: str) -> subprocess.CompletedProcess[str]:
        command = [*PRUNE, *options, "--force", "-o", str(tmp_path / "out"), str(broken)]
        return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)

    done = pruned()
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(broken) as before, zipfile.ZipFile(next((tmp_path / "out").iterdir())) as after:
        for name in ("demo/data.txt", "demo/more.txt"):
            assert raw(broken, before.getinfo(name)) == raw(Path(after.filename or ""), after.getinfo(name))
        assert len(after.read("demo/lib.so")) < len(library)
    checked = pruned("--check-input")
    assert checked.returncode == 3
    assert "demo/data.txt" in checked.stderr


def raw(path: Path, info: zipfile.ZipInfo) -> bytes:
    """The compressed bytes of a member without extra fields."""
    start = info.header_offset + 30 + len(info.filename)
    return path.read_bytes()[start : start + info.compress_size]


def test_100000_containers_and_350000_relocations_are_planned_in_a_few_seconds(tmp_path: Path) -> None:
    path = StreamedLibrary(100_000, payload=512, relocations=250_000).write(tmp_path / "lib.so")
    planner = Planner(Request(parse_targets("sm_80,sm_86")))
    with path.open("rb") as file:
        start = time.process_time()
        slimmed = slim_library(Source.of_file(file.fileno()), planner)
        seconds = time.process_time() - start
    assert slimmed.account.containers == 100_000
    assert slimmed.account.size_after < 0.7 * slimmed.account.size_before
    assert seconds < 30, "3 on the machine of docs/performance.md"


def test_dense_containers_cost_few_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted_reads(monkeypatch)
    data = b"".join(StreamedLibrary(3000, payload=512, relocations=9000).blocks())
    with source_of(data) as source:
        slim_library(source, Planner(Request(parse_targets("sm_80"))))
    assert reads() < 1500, "half a read for each container: its header, its wrapper, its relocation"


def test_headers_of_large_containers_cost_no_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = counted_sizes(monkeypatch)
    library = StreamedLibrary(40, payload=1 << 16)
    with source_of(b"".join(library.blocks())) as source:
        slim_library(source, Planner(Request(parse_targets("sm_80"))))
    assert sizes() < library.size // 8


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    sizes: list[int] = []
    _count(monkeypatch, sizes)
    return lambda: len(sizes)


def counted_sizes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    sizes: list[int] = []
    _count(monkeypatch, sizes)
    return lambda: sum(sizes)


def _count(monkeypatch: pytest.MonkeyPatch, sizes: list[int]) -> None:
    real = Source.read

    def read(self: Source, offset: int, size: int) -> bytes:
        sizes.append(size)
        return real(self, offset, size)

    monkeypatch.setattr(Source, "read", read)
