"""What was asked for passes the proof, and nothing beyond it."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from builders import fatbin
from builders.library import CudaLibrary, Embedded
from integration.memory import Memory
from integration.pruning import prune
from judges import binutils, readelf
from judges.programs import must, program
from wheelslim.architecture import ComputeCapability
from wheelslim.elf.strip import StripMode
from wheelslim.errors import VerifyError
from wheelslim.proof.declared import NOTHING_DECLARED, Declared
from wheelslim.proof.library import LibraryProof, verify_library
from wheelslim.slim import LibraryOptions
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SM_86 = ComputeCapability(8, 6)
ALL, DEBUG = Declared(strip=StripMode.ALL), Declared(strip=StripMode.DEBUG)
EMBEDDED = Declared(embedded=True)


def verify(original: Path, slimmed: Path, declared: Declared) -> LibraryProof:
    with original.open("rb") as old, slimmed.open("rb") as new:
        before, after = Source.of_file(old.fileno()), Source.of_file(new.fileno())
        return verify_library(before, after, [SM_86], declared)


def fails(original: Path, slimmed: Path, declared: Declared, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        verify(original, slimmed, declared)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("compiled"), "-Wl,--emit-relocs")


def build(directory: Path, *options: str) -> Path:
    code = "static int hidden(void) { return 42; } int answer(void) { return hidden(); }"
    (directory / "answer.c").write_text(code)
    usual = ["-g", "-O0", "-shared", "-fPIC", *options, str(directory / "answer.c")]
    must([program("gcc"), *usual, "-o", str(directory / "libanswer.so")])
    return directory / "libanswer.so"


@pytest.mark.parametrize("mode", [StripMode.ALL, StripMode.DEBUG])
def test_only_the_declared_mode_allows_what_it_takes(mode: StripMode, compiled: Path, tmp_path: Path) -> None:
    pruned = prune(compiled, tmp_path / "pruned.so", "sm_86", LibraryOptions(strip=mode))
    verify(compiled, pruned.path, ALL)
    fails(compiled, pruned.path, NOTHING_DECLARED, r"section \S+ is gone|a symbol differs")
    if mode is StripMode.ALL:
        fails(compiled, pruned.path, DEBUG, r"section \.(comment|symtab|strtab) is gone")
    else:
        verify(compiled, pruned.path, DEBUG)


@pytest.mark.parametrize("section", [".eh_frame", ".note.gnu.build-id", ".gnu_debuglink"])
def test_a_section_that_strip_keeps_must_not_be_gone(section: str, compiled: Path, tmp_path: Path) -> None:
    debug = binutils.objcopy(compiled, tmp_path / "debug", "--only-keep-debug")
    linked = binutils.objcopy(compiled, tmp_path / "linked.so", f"--add-gnu-debuglink={debug}")
    pruned = prune(linked, tmp_path / "pruned.so", "sm_86", LibraryOptions(strip=StripMode.ALL))
    less = binutils.objcopy(pruned.path, tmp_path / "less.so", f"--remove-section={section}")
    fails(linked, less, ALL, "is gone|differ|leads nowhere|has another number")


def test_another_value_of_a_symbol_is_found(compiled: Path, tmp_path: Path) -> None:
    pruned = prune(compiled, tmp_path / "pruned.so", "sm_86", LibraryOptions(strip=StripMode.DEBUG))
    table = readelf.read(pruned.path).section(".symtab")
    data = bytearray(pruned.path.read_bytes())
    data[table.offset + table.size - 24 + 8] ^= 1
    pruned.path.write_bytes(data)
    fails(compiled, pruned.path, DEBUG, "a symbol differs")


def test_what_system_strip_does_passes_too(tmp_path: Path) -> None:
    original = build(tmp_path)
    stripped = binutils.strip(original, tmp_path / "stripped.so")
    verify(original, stripped, ALL)
    fails(original, stripped, DEBUG, "is gone")


WORDS = (("sm_80", "sm_100"), ("sm_100",), ("sm_120",), ("sm_100",), ("compute_75", "sm_90"))


@pytest.fixture(params=[200, 70_000], ids=["small", "with holes"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, tuple[int, ...]]:
    """Original, slimmed copy, and the addresses of the embedded containers."""
    size = int(request.param)
    contents = tuple(
        fatbin.container([fatbin.entry(word, size=size, seed=(number, word)) for word in words])
        for number, words in enumerate(WORDS)
    )
    made = CudaLibrary(
        (fatbin.container(["sm_80", "sm_90"]),), embedded=(Embedded(".ldata", contents),), exports=40
    ).build()
    original = tmp_path / "original.so"
    original.write_bytes(made.data)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", LibraryOptions(embedded=True))
    return original, pruned.path, made.embedded[".ldata"]


def poke(path: Path, address: int, change: Callable[[bytes], bytes], size: int = 1) -> None:
    data = bytearray(path.read_bytes())
    load = next(
        load for load in Memory(path).loads if load.address <= address < load.address + load.file_size
    )
    at = load.offset + address - load.address
    data[at : at + size] = change(bytes(data[at : at + size]))
    path.write_bytes(data)


def flip(data: bytes) -> bytes:
    return bytes(byte ^ 0xFF for byte in data)


def test_embedded_device_code_is_counted_and_compared(pair: tuple[Path, Path, tuple[int, ...]]) -> None:
    original, slimmed, _ = pair
    proof = verify(original, slimmed, EMBEDDED)
    assert proof.containers == 1 + len(WORDS)
    assert proof.entries == 3


def test_embedded_device_code_that_nobody_declared(pair: tuple[Path, Path, tuple[int, ...]]) -> None:
    original, slimmed, _ = pair
    fails(original, slimmed, NOTHING_DECLARED, "has another size|differ|are gone")


@pytest.mark.parametrize(
    ("container", "offset", "message"),
    [
        (0, 16 + 64 + 100, "none of the original's entries"),  # a kept payload
        (0, 16 + 28, "none of the original's entries"),  # the SM number of a kept entry
        (4, 8, "is not what it was"),  # the size of a container
        (1, 0, "is not what it was"),  # the first of the zeros that took a container's place
    ],
)
def test_a_flipped_bit_in_embedded_device_code(
    container: int, offset: int, message: str, pair: tuple[Path, Path, tuple[int, ...]]
) -> None:
    original, slimmed, addresses = pair
    poke(slimmed, addresses[container] + offset, flip)
    fails(original, slimmed, EMBEDDED, message)


def test_zeros_for_a_container_that_the_device_runs(pair: tuple[Path, Path, tuple[int, ...]]) -> None:
    original, slimmed, addresses = pair
    size = 16 + struct.unpack("<Q", Memory(slimmed).read(addresses[0] + 8, 8))[0]
    poke(slimmed, addresses[0], lambda data: bytes(len(data)), size)
    fails(original, slimmed, EMBEDDED, "sm_86 no longer runs what it ran before")


def test_host_bytes_between_embedded_containers(pair: tuple[Path, Path, tuple[int, ...]]) -> None:
    original, slimmed, addresses = pair
    poke(slimmed, addresses[1] - 8, flip)
    fails(original, slimmed, EMBEDDED, "host byte at address")


def test_a_hole_that_is_not_readable(pair: tuple[Path, Path, tuple[int, ...]]) -> None:
    """Take the zero-filled end from the PT_LOAD before a hole."""
    original, slimmed, addresses = pair
    data = bytearray(slimmed.read_bytes())
    count = struct.unpack_from("<H", data, 56)[0]
    cut = 0
    for number in range(count):
        at = 64 + 56 * number
        kind, _, _, vaddr, _, filesz, memsz, _ = struct.unpack_from("<IIQQQQQQ", data, at)
        if kind == 1 and filesz < memsz and vaddr < addresses[-1] and vaddr + memsz > addresses[0]:
            struct.pack_into("<Q", data, at + 40, filesz)
            cut += 1
    slimmed.write_bytes(data)
    if cut:
        fails(original, slimmed, EMBEDDED, "expected readable zeros, found nothing")
    else:
        assert verify(original, slimmed, replace(EMBEDDED, strip=StripMode.ALL)).containers == 1 + len(WORDS)
