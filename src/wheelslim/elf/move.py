"""Where the sections go that make way for more program headers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheelslim.elf.filemap import Overlay
from wheelslim.elf.freerun import whole_pages
from wheelslim.elf.layout import DYN, MOVED_TAGS, PAGE_SIZE, PHDR, Machine, SegmentFlag, SegmentType
from wheelslim.elf.model import Segment
from wheelslim.pieces import Copy, Data, Zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.elf.filemap import FileMap
    from wheelslim.elf.freerun import Hole
    from wheelslim.elf.model import ElfFile
    from wheelslim.elf.room import Room
    from wheelslim.pieces import Piece

BLOCK_ALIGNMENT = 64
"""A moved block keeps its address modulo this, so that every section in it stays aligned."""


@dataclass(frozen=True, slots=True)
class Move:
    """The block of ``room`` goes to file offset ``destination``, in terms of the original.

    ``address_shift`` is what its virtual addresses gain, in bytes. ``segment`` is the PT_LOAD that
    is added for it where it goes to the end of the file; then ``destination`` lies behind the
    original's last byte.
    """

    room: Room
    destination: int
    address_shift: int
    segment: Segment | None = None

    def new_place(self, offset: int) -> int:
        """Map a file offset of the original inside the block to where it goes."""
        return offset - self.room.start + self.destination


def host_in_hole(elf: ElfFile, holes: Sequence[Hole], room: Room) -> tuple[tuple[Hole, ...], Move] | None:
    """Put the block at the start of the largest run that no code can reach, and shorten its hole.

    Readable holes are no host: what a library reads across must be zeros.
    """
    source = next(s for s in elf.loads if s.p_filesz and s.p_offset <= room.start < s.file_end)
    for hole in sorted(holes, key=lambda h: (-h.gap.size, h.gap.start)):
        run = hole.run
        if hole.is_readable:
            continue
        load = next(s for s in elf.loads if s.p_filesz and s.p_offset <= run.offset < s.file_end)
        shift = (load.p_vaddr - load.p_offset) - (source.p_vaddr - source.p_offset)
        destination = run.offset + (room.start - shift - run.offset) % BLOCK_ALIGNMENT
        smaller = replace(run, offset=destination + room.moved, size=run.end - destination - room.moved)
        rest = whole_pages(elf, smaller) if smaller.size > 0 else None
        if rest is not None:
            move = Move(room, destination, destination - room.start + shift)
            shorter = replace(hole, gap=rest.gap)
            return tuple(shorter if other is hole else other for other in holes), move
    return None


def append(elf: ElfFile, filemap: FileMap, room: Room) -> Move:
    """Put the block behind the end of the file, in a PT_LOAD of its own above all others."""
    page = PAGE_SIZE[Machine(elf.header.e_machine)]
    source = next(s for s in elf.loads if s.p_filesz and s.p_offset <= room.start < s.file_end)
    address = room.start - source.p_offset + source.p_vaddr
    offset = filemap.new_size + (address - filemap.new_size) % BLOCK_ALIGNMENT
    top = -(-max(load.address_end for load in elf.loads) // page) * page
    new_address = top + offset % page
    segment = Segment(
        SegmentType.LOAD, SegmentFlag.R, offset, new_address, new_address, room.moved, room.moved, page
    )
    destination = filemap.size + offset - filemap.new_size
    return Move(room, destination, new_address - address, segment)


def block(move: Move) -> Piece:
    """The moved bytes."""
    return Copy(move.room.start, move.room.moved)


def with_block(overlays: Sequence[Overlay], move: Move) -> list[Overlay]:
    """Lay the moved block over the zeros of the run that hosts it."""
    start, end = move.destination, move.destination + move.room.moved
    result: list[Overlay] = []
    for overlay in overlays:
        if overlay.offset <= start and end <= overlay.offset + overlay.size:
            before, after = start - overlay.offset, overlay.offset + overlay.size - end
            result.append(Overlay(overlay.offset, (Zeros(before), block(move), Zeros(after))))
        else:
            result.append(overlay)
    return result


def moved_tags(elf: ElfFile, dynamic: Sequence[tuple[int, int, int]], move: Move) -> list[Overlay]:
    """Point the dynamic tags at the moved block; ``dynamic`` is ``read_dynamic``'s table."""
    overlays = []
    for offset, tag, value in dynamic:
        where = elf.offset_of(value) if tag in MOVED_TAGS else None
        if where is not None and move.room.start <= where < move.room.end:
            overlays.append(Overlay(offset, (Data(DYN.pack(tag, value + move.address_shift)),)))
    return overlays


def segment_bytes(elf: ElfFile, segments: Sequence[Segment], move: Move | None) -> bytes:
    """Return the program header table, padded over what it no longer fills and over the moved block."""
    raw = b"".join(segment.pack() for segment in segments)
    size = len(elf.segments) * PHDR.size
    if move is not None:
        size = max(size, move.room.end - elf.header.e_phoff)
    return raw.ljust(size, b"\0")
