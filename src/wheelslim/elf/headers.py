"""The program headers and section headers of the shorter file. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.elf.freerun import AfterCut
from wheelslim.elf.layout import (
    PAGE_SIZE,
    PHDR,
    SectionFlag,
    SectionType,
    SegmentFlag,
    SegmentType,
)
from wheelslim.elf.model import Section
from wheelslim.elf.room import is_inside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.elf.filemap import FileMap
    from wheelslim.elf.freerun import FreeRun, Hole
    from wheelslim.elf.model import ElfFile, Segment
    from wheelslim.elf.move import Move
    from wheelslim.elf.strip import Strip

_WRAP = 1 << 64
"""Physical addresses are whatever was written there; nothing reads them."""

_EXECUTABLE = int(SegmentFlag.X)

INACTIVE = Section("", 0, SectionType.NULL, 0, 0, 0, 0, 0, 0, 0, 0)
"""A header without a section: the gABI's SHT_NULL."""


@dataclass(frozen=True)
class SectionTable:
    """The new section headers, and the new index of every kept old one."""

    headers: tuple[Section, ...]
    renumbered: dict[int, int]


@dataclass(frozen=True)
class FileChange:
    """What both tables follow."""

    filemap: FileMap
    runs: Sequence[FreeRun]
    holes: Sequence[Hole]
    move: Move | None
    strip: Strip


def new_segments(elf: ElfFile, change: FileChange) -> tuple[Segment, ...]:
    """Split each PT_LOAD at its holes and move every file offset; addresses stay.

    Where a new offset is no longer congruent to its address modulo ``p_align`` (segments aligned to
    2 MiB), ``p_align`` becomes the page size, as the loader demands.
    """
    page = PAGE_SIZE[elf.header.e_machine]
    filemap, move = change.filemap, change.move
    result: list[Segment] = []
    for segment in elf.segments:
        if segment.is_load:
            result.extend(_aligned(part, page) for part in _split(segment, change))
        elif move is not None and segment.p_filesz and move.room.start <= segment.p_offset < move.room.end:
            offset = filemap.new_offset(move.new_place(segment.p_offset))
            shift = move.address_shift
            result.append(
                segment._replace(
                    p_offset=offset,
                    p_vaddr=segment.p_vaddr + shift,
                    p_paddr=(segment.p_paddr + shift) % _WRAP,
                )
            )
        elif segment.p_filesz or segment.p_memsz:
            result.append(segment._replace(p_offset=filemap.new_offset(segment.p_offset)))
        else:
            result.append(segment)
    if move is not None and move.segment is not None:
        last = max(index for index, segment in enumerate(result) if segment.is_load)
        result.insert(last + 1, move.segment)
    size = len(result) * PHDR.size
    return tuple(
        s._replace(p_filesz=size, p_memsz=size) if s.p_type == SegmentType.PHDR else s for s in result
    )


def _split(segment: Segment, change: FileChange) -> list[Segment]:
    shift = segment.p_vaddr - segment.p_offset
    parts = []

    def part(start: int, end: int, memory_end: int, flags: int) -> None:
        filesz = end - start
        parts.append(
            segment._replace(
                p_flags=flags,
                p_offset=change.filemap.new_offset(start),
                p_vaddr=start + shift,
                p_paddr=(segment.p_paddr + start - segment.p_offset) % _WRAP,
                p_filesz=filesz,
                p_memsz=memory_end - (start + shift),
            )
        )

    position = segment.p_offset
    for hole in change.holes:
        gap = hole.gap
        if not segment.p_offset <= gap.start < segment.file_end:
            continue
        joins = hole.joins and gap.start > position
        if gap.start > position:
            part(position, gap.start, (gap.end if joins else gap.start) + shift, segment.p_flags)
        if hole.is_readable and not joins:
            # Nobody runs zeros.
            part(gap.start, gap.start, gap.end + shift, segment.p_flags & ~_EXECUTABLE)
        position = gap.end
        if not hole.is_readable and hole.run.end == segment.file_end and segment.p_filesz == segment.p_memsz:
            return parts  # No section lies behind it, and strip breaks a PT_LOAD without sections.
    if position < segment.file_end or segment.address_end > position + shift:
        part(position, segment.file_end, segment.address_end, segment.p_flags)
    return parts


def _aligned(segment: Segment, page: int) -> Segment:
    align = segment.p_align
    if align > page and (segment.p_offset - segment.p_vaddr) % align:
        return segment._replace(p_align=page)
    return segment


def new_sections(elf: ElfFile, change: FileChange) -> SectionTable:
    """Move every section, describe cut sections in parts, and leave out the dropped ones.

    The first part keeps its index; further parts, named alike, come last, so that no index that
    symbols hold changes. Without the parts a later ``strip`` would write the holes back or worse.
    """
    filemap, move = change.filemap, change.move
    kept = [index for index in range(len(elf.sections)) if index not in change.strip.dropped]
    renumbered = {old: new for new, old in enumerate(kept) if old not in change.strip.emptied}
    headers: list[Section] = []
    further: list[Section] = []
    for index in kept:
        if index in change.strip.emptied:
            headers.append(INACTIVE)
            continue
        section = _renumber(elf.sections[index], renumbered)
        if move is not None and section.is_alloc and is_inside(section, move.room):
            offset = filemap.new_offset(move.new_place(section.sh_offset))
            headers.append(section._replace(sh_offset=offset, sh_addr=section.sh_addr + move.address_shift))
            continue
        parts = _parts(section, index, change)
        headers.append(parts[0])
        further.extend(parts[1:])
    return SectionTable((*headers, *further), renumbered)


def _parts(section: Section, index: int, change: FileChange) -> list[Section]:
    filemap = change.filemap
    mine = [hole for hole in change.holes if hole.run.section == index]
    parts: list[Section] = []

    def part(start: int, end: int, sh_type: int) -> None:
        address = section.sh_addr + start - section.sh_offset
        low_bit = address & -address or section.sh_addralign
        parts.append(
            section._replace(
                sh_type=sh_type,
                sh_addr=address,
                sh_offset=filemap.new_offset(start),
                sh_size=end - start,
                sh_addralign=min(section.sh_addralign, low_bit),
            )
        )

    position = section.sh_offset
    for hole in mine:
        end = hole.gap.start if hole.is_readable else hole.run.offset
        if end > position:
            part(position, end, section.sh_type)
        if hole.is_readable:
            part(hole.gap.start, hole.gap.end, SectionType.NOBITS)
        position = hole.gap.end if hole.is_readable else hole.run.end
    end = section.file_end
    cut = {hole.run for hole in mine}
    for run in change.runs:
        if run.section == index and run not in cut and run.end == end and run.after is AfterCut.UNMAPPED:
            end = run.offset
    if end > position:
        part(position, end, section.sh_type)
    if not parts:
        offset = filemap.new_offset(section.sh_offset) if section.sh_offset else 0
        return [section._replace(sh_offset=offset)]
    return parts


def _renumber(section: Section, renumbered: dict[int, int]) -> Section:
    """Follow a changed numbering in ``sh_link`` and, where it is a section index, in ``sh_info``."""
    info_is_section = section.sh_flags & SectionFlag.INFO_LINK or section.sh_type in (
        SectionType.REL,
        SectionType.RELA,
    )
    return section._replace(
        sh_link=renumbered.get(section.sh_link, 0),
        sh_info=renumbered.get(section.sh_info, 0) if info_is_section else section.sh_info,
    )
