"""Why bytes are not a section's own: something else in the file uses them, too. Pure.

Such bytes stay as they are, whatever the section's name promises.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from wheelslim.elf.layout import POINTERS, TABLES, ObjectType, SegmentType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from wheelslim.elf.model import ElfFile, Section, Segment

_HARMLESS = frozenset({SegmentType.LOAD, SegmentType.GNU_RELRO, SegmentType.GNU_STACK})
"""Segments that say nothing of what the bytes mean."""


def misplacement(elf: ElfFile, index: int, sharing: Collection[int]) -> str | None:
    """Say why the section with this index does not have its bytes for itself; None where it does.

    ``sharing`` is what ``sharing_bytes`` returned.
    """
    section = elf.sections[index]
    if index in sharing:
        return "it shares bytes with another section or a header table"
    if elf.header.e_type == ObjectType.REL:
        return None
    if not section.is_alloc:
        return "it is not loaded"
    if not elf.loads_ascend:
        return "the PT_LOADs overlap or are out of order"
    touching = [segment for segment in elf.segments if _touches(segment, section)]
    homes = [segment for segment in touching if segment.is_load]
    if len(homes) != 1 or not _holds(homes[0], section):
        return "its bytes do not lie in one PT_LOAD, at its address"
    kinds = {segment.p_type for segment in touching} - _HARMLESS
    return f"a program header of type {min(kinds):#x} names bytes of it" if kinds else None


class AddressRanges:
    """Half-open address ranges, to be asked whether one of them overlaps another range."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Take them in any order; they may overlap one another."""
        ordered = sorted(ranges)
        self._starts = [start for start, _ in ordered]
        self._reach = list(accumulate((end for _, end in ordered), max))

    def overlap(self, start: int, end: int) -> bool:
        """Whether one of them shares an address with ``[start, end)``."""
        index = bisect_left(self._starts, end)
        return index > 0 and self._reach[index - 1] > start


def named_by_tags(dynamic: Sequence[tuple[int, int, int]]) -> AddressRanges:
    """Return what the dynamic table (``read_dynamic``'s) names: tables whole, of others the first byte."""
    values = {tag: value for _, tag, value in dynamic}
    return AddressRanges(
        (value, value + max(1, values.get(TABLES.get(tag, -1), 1)))
        for _, tag, value in dynamic
        if tag in POINTERS and value
    )


def _touches(segment: Segment, section: Section) -> bool:
    in_file = segment.p_offset < section.file_end and section.sh_offset < segment.file_end
    end = section.sh_addr + section.sh_size
    in_memory = segment.p_vaddr < end and section.sh_addr < segment.address_end
    return bool((segment.p_filesz and in_file) or (segment.is_load and in_memory))


def _holds(load: Segment, section: Section) -> bool:
    return (
        load.p_vaddr - load.p_offset == section.sh_addr - section.sh_offset
        and load.p_offset <= section.sh_offset
        and section.file_end <= load.file_end
    )
