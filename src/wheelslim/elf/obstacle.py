"""Why a file cannot be cut: headers that are of another kind, or that contradict one another. Pure.

What is odd already stays as it is, and only the content of its device code changes, in place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from wheelslim.elf.layout import EHDR, PAGE_SIZE, PHDR, SHDR, ObjectType, SegmentType
from wheelslim.elf.overlap import sharing_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.elf.model import ElfFile

_TRAILING_MAX = 16
_ADDRESS_END = 1 << 62
"""No machine here has so many virtual addresses, and there is room above for a segment more."""


def obstacle(elf: ElfFile) -> str | None:
    """Say why the file cannot be cut, in words for the report; None where it can."""
    return next(_obstacles(elf), None)


def _obstacles(elf: ElfFile) -> Iterator[str]:
    header = elf.header
    if header.e_machine not in PAGE_SIZE:
        yield f"machine {header.e_machine} is neither x86-64 nor AArch64"
        return
    if header.e_type not in (ObjectType.DYN, ObjectType.EXEC):
        yield "it is an object file, not a linked library"
    if not elf.sections:
        yield "its section headers are stripped"
        return
    if header.e_shstrndx >= len(elf.sections):
        yield "its section headers have no names"
    if header.e_phoff < EHDR.size:
        yield "its program header table overlaps the ELF header"
    if elf.size - _described_end(elf) > _TRAILING_MAX:
        yield "it carries bytes behind its last section, which something may look for there"
    yield from _load_obstacles(elf)
    yield from _segment_obstacles(elf)
    yield from _section_obstacles(elf)


def _described_end(elf: ElfFile) -> int:
    """The end of what the headers speak of; old versions of patchelf leave one byte more."""
    table = elf.header.e_shoff + elf.header.e_shnum * SHDR.size
    return max([table, *(s.file_end for s in elf.sections), *(s.file_end for s in elf.segments)])


def _load_obstacles(elf: ElfFile) -> Iterator[str]:
    page = PAGE_SIZE[elf.header.e_machine]
    previous_end = 0
    for load in elf.loads:
        align = max(load.p_align, 1)
        shift = load.p_vaddr - load.p_offset
        if align & (align - 1) or 1 < align < page:
            yield f"a PT_LOAD at {load.p_vaddr:#x} has the odd alignment {align:#x}"
        elif shift % page or shift % align:
            modulus = max(align, page)
            yield f"a PT_LOAD at {load.p_vaddr:#x} is not congruent to its offset modulo {modulus:#x}"
        if load.p_vaddr < previous_end or load.address_end > _ADDRESS_END:
            yield f"its PT_LOADs overlap or are out of order at {load.p_vaddr:#x}"
        previous_end = load.address_end
    ranges = sorted((load.p_offset, load.file_end) for load in elf.loads if load.p_filesz)
    for (_, end), (start, _) in pairwise(ranges):
        if start < end:
            yield f"two PT_LOADs share file bytes at {start:#x}"


def _segment_obstacles(elf: ElfFile) -> Iterator[str]:
    """Other segments lie where their PT_LOAD puts them."""
    table = (elf.header.e_phoff, elf.header.e_phnum * PHDR.size)
    for segment in elf.segments:
        if segment.is_load or not segment.p_filesz:
            continue
        what = f"its program header of type {segment.p_type:#x}"
        if segment.p_type == SegmentType.PHDR:
            if (segment.p_offset, segment.p_filesz) != table:
                yield f"{what} does not name the program header table"
        elif elf.offset_of(segment.p_vaddr, segment.p_filesz) != segment.p_offset:
            yield f"{what} names an offset that its address does not have"


def _section_obstacles(elf: ElfFile) -> Iterator[str]:
    """Sections and header tables take bytes of their own; loaded ones lie where their PT_LOAD puts them."""
    if sharing_bytes(elf):
        yield "sections or header tables of it share bytes of the file"
    names = Counter(s.name for s in elf.sections if s.sh_type and not s.is_alloc)
    if not all(section.name for section in elf.sections if section.sh_type):
        yield "a section of it has no name"
    for name, count in names.items():
        if count > 1:
            yield f"{count} sections that are not loaded are called {name!r}"
    loaded = sorted((load.p_offset, load.file_end) for load in elf.loads if load.p_filesz)
    for section in elf.sections:
        if not section.file_size:
            continue
        if not section.is_alloc:
            index = bisect_left(loaded, (section.file_end, 0))
            if index and loaded[index - 1][1] > section.sh_offset:
                yield f"section {section.name} is loaded, against its flags"
        elif elf.offset_of(section.sh_addr, section.file_size) != section.sh_offset:
            yield f"section {section.name} does not lie where its address says"
