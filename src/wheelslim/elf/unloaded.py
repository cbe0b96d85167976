"""File ranges that no program header covers and that go: stripped sections, the old section headers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.elf.filemap import Gap, Overlay
from wheelslim.elf.layout import PAGE_SIZE, SHDR, Machine
from wheelslim.pieces import Zeros

if TYPE_CHECKING:
    from collections.abc import Collection

    from wheelslim.elf.model import ElfFile

_TAIL_ALIGNMENT = 16
_PADDING_MAX = 64


@dataclass(frozen=True)
class UnloadedGaps:
    """What leaves the file, and zeros over the rest of those ranges, which keeps others aligned."""

    gaps: tuple[Gap, ...]
    zeros: tuple[Overlay, ...]


def unloaded_gaps(elf: ElfFile, gone: Collection[int], *, with_table: bool) -> UnloadedGaps:
    """Return the ranges of the sections in ``gone`` and, ``with_table``, of the section header table.

    What follows keeps its alignment: whole pages go where a PT_LOAD follows, else multiples of 16
    bytes. Ranges that share bytes with something that stays are left alone.
    """
    kept = [(s.sh_offset, s.file_end) for i, s in enumerate(elf.sections) if s.file_size and i not in gone]
    kept += [(s.p_offset, s.file_end) for s in elf.segments if s.p_filesz]
    last_load = max((s.file_end for s in elf.loads), default=0)
    page = PAGE_SIZE[Machine(elf.header.e_machine)]
    gaps: list[Gap] = []
    zeros: list[Overlay] = []
    for start, end in _merged(_ranges(elf, gone, with_table=with_table), kept):
        if any(low < end and high > start for low, high in kept):
            continue
        unit = page if start < last_load else _TAIL_ALIGNMENT
        size = end - start if end == elf.size else (end - start) // unit * unit
        if size:
            gaps.append(Gap(start, start + size))
        if size < end - start:
            zeros.append(Overlay(start + size, (Zeros(end - start - size),)))
    return UnloadedGaps(tuple(gaps), tuple(zeros))


def _ranges(elf: ElfFile, gone: Collection[int], *, with_table: bool) -> list[tuple[int, int]]:
    ranges = [(elf.sections[index].sh_offset, elf.sections[index].file_end) for index in gone]
    if with_table:
        ranges.append((elf.header.e_shoff, elf.header.e_shoff + elf.header.e_shnum * SHDR.size))
    return sorted((start, end) for start, end in ranges if end > start)


def _merged(ranges: list[tuple[int, int]], kept: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges with nothing but padding between them."""
    starts = sorted(start for start, _ in kept)
    merged: list[tuple[int, int]] = []
    for start, end in ranges:
        if merged:
            before, until = merged[-1]
            between = any(until <= at < start for at in starts)
            if start - until < _PADDING_MAX and not between:
                merged[-1] = (before, max(until, end))
                continue
        merged.append((start, end))
    return merged
