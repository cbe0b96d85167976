"""Containers among other data: found by magic, alignment and a full parse, and nothing else taken for one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import elf as make
from builders import fatbin
from builders.sources import source_of
from wheelslim import embedded
from wheelslim.elf.reader import read_elf
from wheelslim.embedded import find_embedded
from wheelslim.fatbin.reader import HeaderWindow

X86_64 = 62
ONE = fatbin.container(["sm_80", "compute_80"])
READ, CODE, WRITE = make.SHF_ALLOC, make.SHF_ALLOC | make.SHF_EXECINSTR, make.SHF_ALLOC | make.SHF_WRITE


def found(data: bytes, name: str = ".rodata", flags: int = READ, kind: int = make.SHT_PROGBITS) -> list[int]:
    """Offsets, in a section that holds ``data``, at which containers are found."""
    section = make.Section(name, len(data), data, type=kind, flags=flags, align=64)
    image = make.Image(X86_64, (make.Segment(make.PF_R, (section,)),), 0x1000, 0x1000)
    content, layout = image.build()
    with source_of(content) as source:
        regions = find_embedded(source, read_elf(source))
        for region in regions:
            for container in region.containers:
                assert region.section.name == name
                assert region.address(container) == layout.address[name] + container.offset
        return [container.offset for region in regions for container in region.containers]


def test_containers_between_other_data_are_found() -> None:
    data = b"text" * 10 + ONE + b"more text".ljust(16) + ONE + ONE
    first = 40
    assert found(data) == [first, first + len(ONE) + 16, first + 2 * len(ONE) + 16]


@pytest.mark.parametrize("name", [".data", ".ldata", ".lrodata", ".cask_resource", "whatever"])
def test_any_section_of_data_may_hold_them(name: str) -> None:
    assert found(bytes(16) + ONE, name, WRITE) == [16]


def test_code_and_what_is_not_loaded_is_not_searched() -> None:
    assert found(ONE, ".text", CODE) == []
    assert found(ONE, ".comment", 0) == []
    assert found(ONE, ".note", READ, make.SHT_NOTE) == []


@pytest.mark.parametrize("name", [".nv_fatbin", "__nv_relfatbin"])
def test_the_sections_of_nvcc_are_not_embedded(name: str) -> None:
    assert found(ONE, name) == []


def cubin(payload: bytes) -> bytes:
    return fatbin.container([fatbin.Entry(b"\x7fELF" + payload)])


TRAPS = {
    "the magic alone": b"\x50\xed\x55\xba" + b"in the middle of some text  ",
    "a header with an absurd size": struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 60),
    "a header without entries": struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0),
    "a header before text": struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 128) + b"plain text, no entry " * 12,
    "another version": fatbin.container(["sm_80"], version=2),
    "an unknown kind": fatbin.container([fatbin.Entry(b"payload", kind=0x400)]),
    "a kind that is known and one that is not": fatbin.container(["sm_80", fatbin.Entry(b"?", kind=0x400)]),
    "an SM number that no device has": fatbin.container([fatbin.Entry(b"\x7fELF....", sm=7)]),
    "a cubin that is no ELF file": fatbin.container([fatbin.Entry(b"no cubin")]),
    "PTX that is no text": fatbin.container([fatbin.Entry(b"\1\2\3\4", kind=fatbin.PTX)]),
    "zstd that is none": fatbin.container(
        [fatbin.Entry(b"no zstd.", flags=fatbin.LINUX_64 | fatbin.ZSTD, compressed_size=8)]
    ),
    "entries that end inside the container": ONE[:8]
    + struct.pack("<Q", len(ONE) - 16 + 8)
    + ONE[16:]
    + bytes(8),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_only_looks_like_a_container_is_none(trap: str) -> None:
    data = TRAPS[trap].ljust(1024, b"\0")
    assert found(data) == []
    assert found(data + ONE) == [1024]


@pytest.mark.parametrize("shift", [1, 2, 4, 7])
def test_a_container_that_is_not_aligned_is_none(shift: int) -> None:
    assert found(bytes(shift) + ONE) == []


@pytest.mark.parametrize("missing", [1, 8, 100, len(ONE) - 17])
def test_a_container_that_the_sections_end_cuts_off_is_none(missing: int) -> None:
    assert found(bytes(8) + ONE[:-missing]) == []


def test_a_container_inside_a_payload_is_part_of_the_outer_one() -> None:
    inner = fatbin.container(["sm_90"])
    outer = cubin(bytes(4) + inner)
    assert found(outer + inner) == [0, len(outer)]


def test_a_candidate_that_would_end_inside_the_next_one_does_not_hide_it() -> None:
    size = len(ONE) - 16 + 100
    damaged = ONE[:8] + struct.pack("<Q", size) + ONE[16:]
    assert found(damaged + ONE) == [len(damaged)]


PARTS = st.sampled_from(
    [ONE, cubin(b"x" * 20), b"\x50\xed\x55\xba", b"\x50\xed\x55", b"\xba\x50\xed", b"text", bytes(8)]
)


@given(st.lists(PARTS, max_size=12), st.integers(4, 300))
def test_the_borders_of_blocks_hide_nothing(parts: list[bytes], block: int) -> None:
    expected: list[int] = []
    data = b""
    for part in parts:
        if len(part) > 80:
            data = data.ljust(-(-len(data) // 8) * 8, b"\0")
            expected.append(len(data))
        data += part
    whole = embedded._BLOCK
    embedded._BLOCK = block
    try:
        assert found(data) == expected
    finally:
        embedded._BLOCK = whole


def test_the_search_gives_up_where_bytes_are_made_to_fail_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each payload is a container's header, whose entries reach to the end, where one does not fit."""
    count = 1000
    header = fatbin.CONTAINER_HEADER
    body = b"".join(
        fatbin.Entry(header.pack(fatbin.CONTAINER_MAGIC, 1, 16, 80 * left + 8)).pack()
        for left in reversed(range(count))
    )
    reads: list[int] = []
    read = HeaderWindow.read

    def counted(self: HeaderWindow, offset: int, size: int) -> bytes:
        reads.append(offset)
        return read(self, offset, size)

    monkeypatch.setattr(HeaderWindow, "read", counted)
    assert found(body + bytes(64)) == []
    assert len(reads) > count * count / 2
    reads.clear()
    monkeypatch.setattr(embedded, "WASTED_READS", 10_000)
    assert found(body + bytes(64)) == []
    assert len(reads) < 10_000 + 2 * count
