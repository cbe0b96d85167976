"""Room for program headers: what may move, in which order, and where that ends."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from builders import elf as make
from builders import fatbin
from builders.library import CudaLibrary
from builders.sources import source_of
from wheelslim.elf.freerun import AfterCut, FreeRun, largest, whole_pages
from wheelslim.elf.reader import read_elf
from wheelslim.elf.room import Room, is_inside, spare_headers, ways_to_make_room

if TYPE_CHECKING:
    from wheelslim.elf.model import ElfFile

ONE = (fatbin.container(["sm_80"]),)


def read(library: CudaLibrary) -> ElfFile:
    with source_of(library.build().data) as source:
        return read_elf(source)


def moved(elf: ElfFile, room: Room) -> list[str]:
    return [section.name for section in elf.sections if is_inside(section, room)]


def test_ever_more_of_the_leading_tables_make_way_up_to_the_relocations() -> None:
    elf = read(CudaLibrary(ONE, hash_style="both"))
    rooms = list(ways_to_make_room(elf))
    assert [moved(elf, room) for room in rooms] == [
        [],
        [".note.gnu.build-id"],
        [".note.gnu.build-id", ".hash"],
        [".note.gnu.build-id", ".hash", ".gnu.hash"],
        [".note.gnu.build-id", ".hash", ".gnu.hash", ".dynstr"],
        [".note.gnu.build-id", ".hash", ".gnu.hash", ".dynstr", ".dynsym"],
    ]
    rela = elf.section(".rela.dyn")
    assert rela is not None
    followers = (".hash", ".gnu.hash", ".dynstr", ".dynsym", ".rela.dyn")
    for room, following in zip(rooms[1:], followers, strict=True):
        section = elf.section(following)
        assert section is not None
        assert room.headers == (section.sh_offset - 64) // 56
        assert room.moved == max(s.file_end for s in elf.sections if is_inside(s, room)) - room.start


def test_free_bytes_behind_the_table_are_room_without_a_move() -> None:
    elf = read(CudaLibrary(ONE, headroom=560))
    first = next(iter(ways_to_make_room(elf)))
    assert first.moved == 0
    assert first.headers == len(elf.segments) + 10


def test_tables_that_patchelf_has_moved_are_not_in_the_way() -> None:
    elf = read(CudaLibrary(ONE, moved_tables=True, headroom=112))
    names = [moved(elf, room) for room in ways_to_make_room(elf)]
    assert names == [[], [".dynsym"]]


def test_without_sections_or_behind_an_unloaded_table_there_is_no_room() -> None:
    assert list(ways_to_make_room(read(CudaLibrary(ONE, section_headers=False)))) == []
    data = bytearray(CudaLibrary(ONE).build().data)
    struct.pack_into("<Q", data, 64 + 32, 100)  # the first PT_LOAD ends inside the table
    with source_of(bytes(data)) as source:
        assert list(ways_to_make_room(read_elf(source))) == []


def test_patchelf_needs_a_header_for_itself_and_one_for_each_note() -> None:
    assert spare_headers(read(CudaLibrary(ONE, note=False))) == 2
    assert spare_headers(read(CudaLibrary(ONE))) == 3


def code(size: int, *, segment: str) -> tuple[ElfFile, int, int]:
    """A file with ``size`` bytes of ``.data``: its headers, and the section's offset and index."""
    flags = {"R": make.PF_R, "RW": make.PF_R | make.PF_W, "RX": make.PF_R | make.PF_X}[segment]
    section = make.Section(".data", size, b"\1" * size, align=16)
    first = make.Segment(make.PF_R, (make.Section(".rodata", 64, b""),))
    data, layout = make.Image(62, (first, make.Segment(flags, (section,))), 0x1000, 0x1000).build()
    with source_of(data) as source:
        return read_elf(source), layout.offset[".data"], layout.index[".data"]


@pytest.mark.parametrize(
    ("start", "size", "gap"),
    [
        (0, 0x5000, (0, 0x5000)),
        (1, 0x4FFF, (0x1000, 0x5000)),
        (0x1000, 0x1FFF, (0x1000, 0x2000)),
        (0x10, 0x1FE0, None),
        (0x10, 0x1FF0, (0x1000, 0x2000)),
        (0x800, 0x800, None),
    ],
)
def test_only_whole_pages_leave_the_file(start: int, size: int, gap: tuple[int, int] | None) -> None:
    elf, base, index = code(0x8000, segment="R")
    hole = whole_pages(elf, FreeRun(base + start, size, index, AfterCut.UNMAPPED))
    if gap is None:
        assert hole is None
    else:
        assert hole is not None
        assert (hole.gap.start - base, hole.gap.end - base) == gap
        assert hole.headers == 1


@pytest.mark.parametrize(
    ("segment", "start", "headers"), [("R", 0x1000, 1), ("RW", 0x1000, 1), ("RX", 0x1000, 2), ("R", 0, 2)]
)
def test_a_readable_hole_joins_what_is_before_it_unless_that_is_code(
    segment: str, start: int, headers: int
) -> None:
    elf, base, index = code(0x20000, segment=segment)
    hole = whole_pages(elf, FreeRun(base + start, 0x11000, index, AfterCut.ZEROS))
    assert hole is not None
    assert (hole.headers, hole.joins) == (headers, headers == 1)
    small = whole_pages(elf, FreeRun(base + start, 0xF000, index, AfterCut.ZEROS))
    assert small is None


def test_the_largest_holes_come_first_and_are_given_in_order() -> None:
    elf, base, index = code(0x80000, segment="R")
    runs = [FreeRun(base + 0x10000 * n, 0x1000 * (n + 1), index, AfterCut.UNMAPPED) for n in range(4)]
    holes = [hole for run in runs if (hole := whole_pages(elf, run))]
    assert [hole.run for hole in largest(holes, 2)] == runs[2:]
    assert largest(holes, 0) == ()
    assert [hole.run for hole in largest(list(reversed(holes)), 9)] == runs
