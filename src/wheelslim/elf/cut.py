"""Plan a shorter file: freed pages leave it, virtual addresses stay. Pure.

The method and what was measured of it: docs/how-it-works.md, "Cutting the file".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from wheelslim.elf.filemap import FileMap, Gap, Overlay
from wheelslim.elf.freerun import AfterCut, FreeRun, Hole
from wheelslim.elf.headers import FileChange, new_sections, new_segments
from wheelslim.elf.layout import DYN, EHDR, PAGE_SIZE, PHDR, SHDR, ObjectType
from wheelslim.elf.room import BLOCK_ALIGNMENT, MOVED_TAGS, Move, Room, is_inside, ways_to_make_room
from wheelslim.pieces import Copy, Data, Zeros, total_size

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from wheelslim.elf.model import ElfFile, Segment
    from wheelslim.pieces import Piece

HOLE_MIN = 0x10000
"""A hole that must stay readable costs two program headers, so smaller ones stay in the file as zeros."""

_TABLE_ALIGNMENT = 8
_TAIL_ALIGNMENT = 16


@dataclass(frozen=True)
class Cut:
    """The new file: its pieces and size in bytes, what left it, and what had to move.

    ``shortfall`` says in words what stayed in the file for want of program headers.
    """

    pieces: tuple[Piece, ...]
    size: int
    holes: tuple[Hole, ...]
    moved_sections: tuple[str, ...]
    shortfall: str | None = None


def obstacle(elf: ElfFile) -> str | None:
    """Say why the file cannot be cut, in words for the report; None where it can."""
    if elf.header.e_machine not in PAGE_SIZE:
        return f"machine {elf.header.e_machine} is neither x86-64 nor AArch64"
    if elf.header.e_type not in (ObjectType.DYN, ObjectType.EXEC):
        return "it is an object file, not a linked library"
    if not elf.sections:
        return "its section headers are stripped"
    if elf.header.e_phoff < EHDR.size:
        return "its program header table overlaps the ELF header"
    return _segment_obstacle(elf)


def _segment_obstacle(elf: ElfFile) -> str | None:
    page = PAGE_SIZE[elf.header.e_machine]
    previous_end = 0
    for load in elf.loads:
        if (load.p_vaddr - load.p_offset) % page:
            return f"a PT_LOAD at {load.p_vaddr:#x} is not congruent to its offset modulo {page:#x}"
        if load.p_vaddr < previous_end:
            return f"its PT_LOADs overlap or are out of order at {load.p_vaddr:#x}"
        previous_end = load.address_end
    ranges = sorted((load.p_offset, load.file_end) for load in elf.loads if load.p_filesz)
    for (_, end), (start, _) in pairwise(ranges):
        if start < end:
            return f"two PT_LOADs share file bytes at {start:#x}"
    return None


def plan_cut(
    elf: ElfFile,
    overlays: Sequence[Overlay],
    runs: Sequence[FreeRun],
    dynamic: Sequence[tuple[int, int, int]],
    dropped: Collection[int] = (),
) -> Cut:
    """Plan the new file from the new content, the runs that it frees and the sections to drop.

    ``overlays`` are disjoint and hold zeros in the runs. ``dynamic`` is ``read_dynamic``'s table;
    ``dropped`` are indexes of sections that are not loaded. Runs that cannot leave the file, for
    want of program headers, stay in it as zeros.
    """
    holes, move, shortfall = _choose(elf, runs)
    table_is_loaded = any(
        load.p_offset < elf.header.e_shoff + elf.header.e_shnum * SHDR.size
        and load.file_end > elf.header.e_shoff
        for load in elf.loads
    )
    gaps = [hole.gap for hole in holes]
    gaps.extend(_unloaded_gaps(elf, dropped, with_table=not table_is_loaded))
    filemap = FileMap(elf.size, gaps)
    change = FileChange(filemap, runs, holes, move, dropped)
    sections = new_sections(elf, change)
    segments = new_segments(elf, change)

    table = b"".join(section.pack() for section in sections.headers)
    old_table = elf.header.e_shnum * SHDR.size
    overlays = list(overlays)
    tail: list[Piece] = []
    if table_is_loaded and len(table) <= old_table:
        e_shoff = filemap.new_offset(elf.header.e_shoff)
        overlays.append(Overlay(elf.header.e_shoff, (Data(table.ljust(old_table, b"\0")),)))
    else:
        e_shoff = -(-filemap.new_size // _TABLE_ALIGNMENT) * _TABLE_ALIGNMENT
        tail = [Zeros(e_shoff - filemap.new_size), Data(table)]
        if table_is_loaded:
            overlays.append(Overlay(elf.header.e_shoff, (Zeros(old_table),)))
    header = elf.header._replace(
        e_phnum=len(segments),
        e_shoff=e_shoff,
        e_shnum=len(sections.headers),
        e_shstrndx=sections.renumbered[elf.header.e_shstrndx],
    )
    overlays.append(Overlay(0, (Data(header.pack()),)))
    overlays.append(Overlay(elf.header.e_phoff, (Data(_segment_bytes(elf, segments, move)),)))
    if move is not None:
        overlays = _with_block(overlays, move)
        overlays.extend(_moved_tags(elf, dynamic, move))
    pieces = tuple(piece for piece in (*filemap.pieces(overlays), *tail) if piece.size)
    return Cut(
        pieces=pieces,
        size=total_size(pieces),
        holes=holes,
        moved_sections=tuple(s.name for s in elf.sections if move and is_inside(s, move.room)),
        shortfall=shortfall,
    )


def _choose(elf: ElfFile, runs: Sequence[FreeRun]) -> tuple[tuple[Hole, ...], Move | None, str | None]:
    """Pick the holes that the program header table has room for, the largest first, and how to make room."""
    holes = [hole for run in runs if (hole := whole_pages(elf, run)) is not None]
    if not holes:
        return (), None, None
    rooms = list(ways_to_make_room(elf))
    used = len(elf.segments)
    needed = sum(hole.headers for hole in holes)
    rooms = [room for room in rooms if room.headers > used]
    while rooms:
        fitting = [room for room in rooms if room.headers - used >= needed]
        room = fitting[0] if fitting else rooms[-1]
        taken = _largest(holes, room.headers - used)
        left = f"{len(holes) - len(taken)} of {len(holes)} freed runs stay in the file as zeros: no room for "
        shortfall = left + "more program headers" if len(taken) < len(holes) else None
        if not room.moved:
            return taken, None, shortfall
        hosted = _host(elf, taken, room)
        if hosted is not None:
            return hosted[0], hosted[1], shortfall
        rooms = [other for other in rooms if other.moved < room.moved]
    return (), None, "the freed bytes stay in the file as zeros: no room for another program header"


def whole_pages(elf: ElfFile, run: FreeRun) -> Hole | None:
    """Return the whole pages of a run that lies in one PT_LOAD and in no other segment."""
    page = PAGE_SIZE[elf.header.e_machine]
    homes = [s for s in elf.segments if s.p_filesz and s.p_offset < run.end and s.file_end > run.offset]
    if len(homes) != 1 or not homes[0].is_load or not run.size:
        return None
    home: Segment = homes[0]
    shift = home.p_vaddr - home.p_offset
    start = -(-(run.offset + shift) // page) * page - shift
    end = (run.end + shift) // page * page - shift
    least = HOLE_MIN if run.after is AfterCut.ZEROS else page
    return Hole(run, Gap(start, end)) if end - start >= least else None


def _largest(holes: Sequence[Hole], headers: int) -> tuple[Hole, ...]:
    taken = []
    for hole in sorted(holes, key=lambda item: (-item.gap.size, item.gap.start)):
        if hole.headers <= headers:
            headers -= hole.headers
            taken.append(hole)
    return tuple(sorted(taken, key=lambda item: item.gap.start))


def _host(elf: ElfFile, holes: tuple[Hole, ...], room: Room) -> tuple[tuple[Hole, ...], Move] | None:
    """Put the moved block at the start of the run that spares it most easily; runs nobody reads first."""
    order = sorted(holes, key=lambda h: (h.run.after is not AfterCut.UNMAPPED, -h.gap.size, h.gap.start))
    for hole in order:
        run = hole.run
        load = next(s for s in elf.loads if s.p_filesz and s.p_offset <= run.offset < s.file_end)
        source = next(s for s in elf.loads if s.p_filesz and s.p_offset <= room.start < s.file_end)
        shift = (load.p_vaddr - load.p_offset) - (source.p_vaddr - source.p_offset)
        destination = run.offset + (room.start - shift - run.offset) % BLOCK_ALIGNMENT
        smaller = replace(run, offset=destination + room.moved, size=run.end - destination - room.moved)
        rest = whole_pages(elf, smaller) if smaller.size > 0 else None
        if rest is not None:
            kept = Hole(run, rest.gap)
            move = Move(room, destination, destination - room.start + shift)
            return tuple(kept if other is hole else other for other in holes), move
    return None


def _unloaded_gaps(elf: ElfFile, dropped: Collection[int], *, with_table: bool) -> list[Gap]:
    """Return the file ranges of dropped sections and of the old section header table.

    What follows keeps its alignment: whole pages where a PT_LOAD follows, else 16 bytes.
    """
    ranges = [(elf.sections[index].sh_offset, elf.sections[index].file_end) for index in dropped]
    if with_table:
        ranges.append((elf.header.e_shoff, elf.header.e_shoff + elf.header.e_shnum * SHDR.size))
    kept = sorted(
        [(s.sh_offset, s.file_end) for i, s in enumerate(elf.sections) if s.file_size and i not in dropped]
        + [(s.p_offset, s.file_end) for s in elf.segments if s.p_filesz]
    )
    last_load = max((s.file_end for s in elf.loads), default=0)
    merged: list[list[int]] = []
    for start, end in sorted(r for r in ranges if r[1] > r[0]):
        if (
            merged
            and not any(merged[-1][1] <= k[0] < start for k in kept)
            and start - merged[-1][1] < PHDR.size
        ):
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    gaps = []
    for start, end in merged:
        if any(k[0] < end and k[1] > start for k in kept):
            continue  # Something that stays shares these bytes.
        page = PAGE_SIZE[elf.header.e_machine]
        unit = page if start < last_load else _TAIL_ALIGNMENT
        size = end - start if end == elf.size else (end - start) // unit * unit
        if size:
            gaps.append(Gap(start, start + size))
    return gaps


def _segment_bytes(elf: ElfFile, segments: Sequence[Segment], move: Move | None) -> bytes:
    """Return the program header table, padded over what it no longer fills and over the moved block."""
    raw = b"".join(segment.pack() for segment in segments)
    size = len(elf.segments) * PHDR.size
    if move is not None:
        size = max(size, move.room.end - elf.header.e_phoff)
    return raw.ljust(size, b"\0")


def _with_block(overlays: Sequence[Overlay], move: Move) -> list[Overlay]:
    """Lay the moved block over the zeros of the run that hosts it."""
    start, end = move.destination, move.destination + move.room.moved
    result: list[Overlay] = []
    for overlay in overlays:
        over = Overlay(start, (Copy(move.room.start, move.room.moved),))
        if overlay.offset <= start and end <= overlay.offset + overlay.size:
            before, after = start - overlay.offset, overlay.offset + overlay.size - end
            result.extend((Overlay(overlay.offset, (Zeros(before),)), over, Overlay(end, (Zeros(after),))))
        else:
            result.append(overlay)
    return result


def _moved_tags(elf: ElfFile, dynamic: Sequence[tuple[int, int, int]], move: Move) -> list[Overlay]:
    """Point the dynamic tags at the moved block."""
    overlays = []
    for offset, tag, value in dynamic:
        where = elf.offset_of(value) if tag in MOVED_TAGS else None
        if where is not None and move.room.start <= where < move.room.end:
            overlays.append(Overlay(offset, (Data(DYN.pack(tag, value + move.address_shift)),)))
    return overlays
