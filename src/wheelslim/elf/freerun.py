"""Runs of bytes that pruning has freed, and the whole pages of them that leave the file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.elf.filemap import Gap
from wheelslim.elf.layout import PAGE_SIZE, SegmentFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.elf.model import ElfFile

HOLE_MIN = 0x10000
"""A hole that must stay readable costs program headers, so smaller ones stay in the file as zeros."""


class AfterCut(Enum):
    """What is found at the addresses of a run once its pages have left the file."""

    UNMAPPED = "unmapped"
    """Nothing: no reference leads there."""
    ZEROS = "zeros"
    """Readable zeros: code may read across."""


@dataclass(frozen=True, slots=True)
class FreeRun:
    """Bytes of one section that nothing needs any more; the new content holds zeros there.

    ``offset`` is a file offset, ``size`` bytes, ``section`` the section's index.
    """

    offset: int
    size: int
    section: int
    after: AfterCut

    @property
    def end(self) -> int:
        """The first file offset after the run."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Hole:
    """The whole pages of a run, as the file range that is left out.

    ``headers`` is how many program headers it adds at most. ``joins`` is whether a readable hole can
    be the zero-filled end of the PT_LOAD part before it.
    """

    run: FreeRun
    gap: Gap
    headers: int
    joins: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether zeros are found at its addresses."""
        return self.run.after is AfterCut.ZEROS


def whole_pages(elf: ElfFile, run: FreeRun) -> Hole | None:
    """Return the whole pages of a run that lies in one PT_LOAD and in no other segment."""
    page = PAGE_SIZE[elf.header.e_machine]
    if run.size < page:
        return None
    homes = [s for s in elf.segments if s.p_filesz and s.p_offset < run.end and s.file_end > run.offset]
    if len(homes) != 1 or not homes[0].is_load:
        return None
    home = homes[0]
    shift = home.p_vaddr - home.p_offset
    start = -(-(run.offset + shift) // page) * page - shift
    end = (run.end + shift) // page * page - shift
    if run.after is AfterCut.UNMAPPED:
        return Hole(run, Gap(start, end), headers=1) if end - start >= page else None
    # More memory than file asks for anonymous memory of the segment's kind, which SELinux may refuse
    # where it is executable; then the hole is a PT_LOAD of its own, and so is what follows.
    joins = not home.p_flags & SegmentFlag.X and start > home.p_offset
    return Hole(run, Gap(start, end), 1 if joins else 2, joins) if end - start >= HOLE_MIN else None


def largest(holes: Sequence[Hole], headers: int) -> tuple[Hole, ...]:
    """Choose the holes that ``headers`` program headers suffice for, the largest first; sorted by place."""
    taken = []
    for hole in sorted(holes, key=lambda item: (-item.gap.size, item.gap.start)):
        if hole.headers <= headers:
            headers -= hole.headers
            taken.append(hole)
    return tuple(sorted(taken, key=lambda item: item.gap.start))
