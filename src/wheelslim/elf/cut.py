"""Plan a shorter file: freed pages leave it, virtual addresses stay. Pure.

The method and what was measured of it: docs/how-it-works.md, "Cutting the file".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.elf.filemap import FileMap, Overlay
from wheelslim.elf.freerun import FreeRun, Hole, largest, whole_pages
from wheelslim.elf.headers import FileChange, new_sections, new_segments
from wheelslim.elf.layout import SHDR
from wheelslim.elf.move import Move, append, block, host_in_hole, moved_tags, segment_bytes, with_block
from wheelslim.elf.room import Room, is_inside, spare_headers, ways_to_make_room
from wheelslim.elf.strip import NOTHING_STRIPPED, Strip
from wheelslim.elf.unloaded import unloaded_gaps
from wheelslim.pieces import Data, Zeros, total_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.elf.model import ElfFile
    from wheelslim.pieces import Piece

_TABLE_ALIGNMENT = 8


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


def plan_cut(
    elf: ElfFile,
    overlays: Sequence[Overlay],
    runs: Sequence[FreeRun],
    dynamic: Sequence[tuple[int, int, int]],
    strip: Strip = NOTHING_STRIPPED,
) -> Cut:
    """Plan the new file from the new content, the runs that it frees and the sections that go.

    ``overlays`` are disjoint and hold zeros in the runs. ``dynamic`` is ``read_dynamic``'s table.
    Runs that cannot leave the file, for want of program headers, stay in it as zeros.
    """
    choice = _choose(elf, runs, dynamic)
    holes, move = choice.holes, choice.move
    table_is_loaded = any(
        load.p_offset < elf.header.e_shoff + elf.header.e_shnum * SHDR.size
        and load.file_end > elf.header.e_shoff
        for load in elf.loads
    )
    unloaded = unloaded_gaps(elf, strip.gone, with_table=not table_is_loaded)
    filemap = FileMap(elf.size, [*(hole.gap for hole in holes), *unloaded.gaps])
    tail: list[Piece] = []
    if choice.appended is not None:
        move = append(elf, filemap, choice.appended)
        tail = [Zeros(filemap.new_offset(move.destination) - filemap.new_size), block(move)]
    change = FileChange(filemap, runs, holes, move, strip)
    sections = new_sections(elf, change)
    segments = new_segments(elf, change)

    table = b"".join(section.pack() for section in sections.headers)
    old_table = elf.header.e_shnum * SHDR.size
    overlays = [*overlays, *strip.overlays, *unloaded.zeros]
    if table_is_loaded and len(table) <= old_table:
        e_shoff = filemap.new_offset(elf.header.e_shoff)
        overlays.append(Overlay(elf.header.e_shoff, (Data(table.ljust(old_table, b"\0")),)))
    else:
        end = filemap.new_size + total_size(tail)
        e_shoff = -(-end // _TABLE_ALIGNMENT) * _TABLE_ALIGNMENT
        tail.extend((Zeros(e_shoff - end), Data(table)))
        if table_is_loaded:
            overlays.append(Overlay(elf.header.e_shoff, (Zeros(old_table),)))
    header = elf.header._replace(
        e_phnum=len(segments),
        e_shoff=e_shoff,
        e_shnum=len(sections.headers),
        e_shstrndx=sections.renumbered[elf.header.e_shstrndx],
    )
    overlays.append(Overlay(0, (Data(header.pack()),)))
    overlays.append(Overlay(elf.header.e_phoff, (Data(segment_bytes(elf, segments, move)),)))
    if move is not None:
        if move.segment is None:
            overlays = with_block(overlays, move)
        overlays.extend(moved_tags(elf, dynamic, move))
    pieces = tuple(piece for piece in (*filemap.pieces(overlays), *tail) if piece.size)
    return Cut(
        pieces=pieces,
        size=total_size(pieces),
        holes=holes,
        moved_sections=tuple(s.name for s in elf.sections if move and is_inside(s, move.room)),
        shortfall=choice.shortfall,
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """The holes to cut; a move into one of them, or the room whose block is to be appended."""

    holes: tuple[Hole, ...] = ()
    move: Move | None = None
    appended: Room | None = None
    shortfall: str | None = None


def _choose(elf: ElfFile, runs: Sequence[FreeRun], dynamic: Sequence[tuple[int, int, int]]) -> _Choice:
    """Pick the holes that the program header table has room for, and the least that has to move for them."""
    holes = [hole for run in runs if (hole := whole_pages(elf, run)) is not None]
    best = _Choice()
    for room in ways_to_make_room(elf, dynamic) if holes else ():
        choice = _with_room(elf, holes, room)
        if choice is not None and _freed(choice) > _freed(best):
            best = choice
        if len(best.holes) == len(holes):
            break
    left = len(holes) - len(best.holes)
    if left:
        what = f"{left} of {len(holes)} freed runs stay" if best.holes else "the freed bytes stay"
        shortfall = f"{what} in the file as zeros: no room for more program headers"
        return _Choice(best.holes, best.move, best.appended, shortfall)
    return best


def _freed(choice: _Choice) -> int:
    return sum(hole.gap.size for hole in choice.holes)


def _with_room(elf: ElfFile, holes: Sequence[Hole], room: Room) -> _Choice | None:
    headers = room.headers - len(elf.segments)
    if not room.moved:
        return _Choice(largest(holes, headers))
    headers -= spare_headers(elf)
    taken = largest(holes, headers)
    hosted = host_in_hole(elf, taken, room)
    if hosted is not None:
        return _Choice(*hosted)
    taken = largest(holes, headers - 1)  # The block's own PT_LOAD takes one.
    return _Choice(taken, appended=room) if taken else None
