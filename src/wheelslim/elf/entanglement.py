"""Why the bytes of a section are not its own: something else in the file uses them, too. Pure.

Such a section stays as it is, whatever its name promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.elf.layout import POINTERS, TABLES, ObjectType, SegmentType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from wheelslim.elf.model import ElfFile, Section, Segment

_HARMLESS = frozenset({SegmentType.LOAD, SegmentType.GNU_RELRO, SegmentType.GNU_STACK})
"""Segments that say nothing of what the bytes mean."""


def entanglement(
    elf: ElfFile, index: int, dynamic: Sequence[tuple[int, int, int]], sharing: Collection[int]
) -> str | None:
    """Say what else uses the bytes of the section with this index; None where nothing does.

    ``dynamic`` is ``read_dynamic``'s table, ``sharing`` what ``sharing_bytes`` returned.
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
    return next(_foreign_uses(elf, section, dynamic), None)


def _foreign_uses(elf: ElfFile, section: Section, dynamic: Sequence[tuple[int, int, int]]) -> Iterator[str]:
    start, end = section.sh_addr, section.sh_addr + section.sh_size
    touching = [segment for segment in elf.segments if _touches(segment, section)]
    homes = [segment for segment in touching if segment.is_load]
    if len(homes) != 1 or not _holds(homes[0], section):
        yield "its bytes do not lie in one PT_LOAD, at its address"
    for segment in touching:
        if segment.p_type not in _HARMLESS:
            yield f"a program header of type {segment.p_type:#x} names bytes of it"
    values = {tag: value for _, tag, value in dynamic}
    for tag, value in values.items():
        size = values.get(TABLES.get(tag, -1), 1)
        if tag in POINTERS and value and value < end and value + size > start:
            yield f"the dynamic tag {tag:#x} leads into it"


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
