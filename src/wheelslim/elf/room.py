"""Room for more program headers: the table grows where it is, and what follows makes way.

A table moved into the middle of the file loads too, but a later ``strip`` destroys the library
(docs/how-it-works.md), so the table stays and the small sections behind it move as one block into
bytes that the removed device code has freed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.elf.layout import MOVED_TAGS, PHDR, POINTERS, SectionType, SegmentType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelslim.elf.model import ElfFile, Section

_GNU_VERSYM = 0x6FFFFFFF
_GNU_VERDEF = 0x6FFFFFFD
_GNU_VERNEED = 0x6FFFFFFE

_MOVABLE = frozenset(
    {
        SectionType.NOTE,
        SectionType.GNU_HASH,
        SectionType.HASH,
        SectionType.DYNSYM,
        SectionType.STRTAB,
        _GNU_VERSYM,
        _GNU_VERDEF,
        _GNU_VERNEED,
    }
)
"""Section types that only program headers and dynamic tags point at."""


@dataclass(frozen=True, slots=True)
class Room:
    """One way to make room: ``headers`` program headers fit once ``[start, end)`` has moved.

    ``start == end`` where nothing has to move. File offsets in bytes.
    """

    headers: int
    start: int
    end: int

    @property
    def moved(self) -> int:
        """Bytes that move."""
        return self.end - self.start


def spare_headers(elf: ElfFile) -> int:
    """How many program headers to leave room for behind a table that has grown over moved sections.

    patchelf adds one for its new segment and one for each note, and looks for sections in its way
    only among the first in the table, where the moved ones stand (patchelf 0.14.3: without the
    room it writes over the sections behind the table).
    """
    return 2 + sum(segment.p_type == SegmentType.NOTE for segment in elf.segments)


def ways_to_make_room(elf: ElfFile, dynamic: Sequence[tuple[int, int, int]] = ()) -> Iterator[Room]:
    """Yield ever larger rooms: nothing moved, the first section moved, and so on.

    ``dynamic`` is ``read_dynamic``'s table.
    """
    table = elf.header.e_phoff
    table_end = table + elf.header.e_phnum * PHDR.size
    after = sorted(
        (s for s in elf.sections if s.file_size and s.file_end > table_end), key=lambda s: s.sh_offset
    )
    limit = _limit(elf, dynamic, table, table_end)
    if limit is None or not after or after[0].sh_offset < table_end:
        return
    start = min(after[0].sh_offset, limit)
    yield Room((start - table) // PHDR.size, start, start)
    for index, section in enumerate(after[:-1]):
        if not _is_movable(elf, section) or section.file_end > limit:
            return
        end = min(after[index + 1].sh_offset, limit)
        if end < section.file_end:
            return  # Sections overlap: leave them.
        if not _cuts_a_segment(elf, start, section.file_end):
            yield Room((end - table) // PHDR.size, start, section.file_end)


def _is_movable(elf: ElfFile, section: Section) -> bool:
    """Whether only program headers and dynamic tags point at it; the interpreter's name is one such."""
    is_name = any(
        segment.p_type == SegmentType.INTERP
        and (segment.p_offset, segment.p_filesz) == (section.sh_offset, section.sh_size)
        for segment in elf.segments
    )
    return section.is_alloc and (section.sh_type in _MOVABLE or is_name)


def _limit(elf: ElfFile, dynamic: Sequence[tuple[int, int, int]], table: int, table_end: int) -> int | None:
    """How far the table may reach: the end of its segment, the section headers, what cannot move."""
    home = next(
        (s for s in elf.loads if s.p_offset <= table and table_end <= s.file_end),
        None,
    )
    if home is None:
        return None
    starts = [elf.header.e_shoff, *(s.p_offset for s in elf.loads if s is not home and s.p_filesz)]
    starts.extend(_fixed(elf, dynamic))
    return min([home.file_end, *(start for start in starts if start >= table_end)])


def _fixed(elf: ElfFile, dynamic: Sequence[tuple[int, int, int]]) -> Iterator[int]:
    """Yield the file offsets of what program headers and dynamic tags name and no move would follow.

    Where no section describes it, it would not move. Old versions of patchelf left such a PT_NOTE
    behind when they moved its section, below the end of a table that has grown over it.
    """
    offsets = {s.sh_offset for s in elf.sections if s.is_alloc and s.file_size}
    for segment in elf.segments:
        if not segment.is_load and segment.p_filesz and segment.p_offset not in offsets:
            yield segment.p_offset
    for _, tag, value in dynamic:
        offset = elf.offset_of(value) if tag in POINTERS else None
        if offset is not None and (tag not in MOVED_TAGS or offset not in offsets):
            yield offset


def _cuts_a_segment(elf: ElfFile, start: int, end: int) -> bool:
    """Whether a program header other than PT_LOAD lies across the border of ``[start, end)``."""
    return any(
        not s.is_load
        and s.p_filesz
        and s.p_offset < end
        and s.file_end > start
        and not (start <= s.p_offset and s.file_end <= end)
        for s in elf.segments
    )


def is_inside(section: Section, room: Room) -> bool:
    """Whether a section is part of the moved block."""
    return bool(section.file_size) and room.start <= section.sh_offset and section.file_end <= room.end
