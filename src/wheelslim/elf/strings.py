"""Strings that the dynamic table names: needed libraries, the soname."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.elf.layout import DynamicTag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.elf.model import ElfFile
    from wheelslim.source import Source

_LONGEST = 4096


def dynamic_strings(
    source: Source, elf: ElfFile, dynamic: Sequence[tuple[int, int, int]], tag: DynamicTag
) -> tuple[str, ...]:
    """Return the strings of all entries with ``tag``; those outside the string table are left out.

    ``dynamic`` is ``read_dynamic``'s table.
    """
    tags = {entry: value for _, entry, value in dynamic}
    table, size = tags.get(DynamicTag.STRTAB), tags.get(DynamicTag.STRSZ, 0)
    start = None if table is None else elf.offset_of(table, max(size, 1))
    if start is None:
        return ()
    found = []
    for _, entry, value in dynamic:
        if entry == tag and value < size:
            raw = source.read(start + value, min(size - value, _LONGEST))
            found.append(raw.partition(b"\0")[0].decode("utf-8", "replace"))
    return tuple(found)
