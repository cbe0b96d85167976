"""Bytes of a library that are never loaded: symbols and debug information."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wheelslim.elf.layout import SectionType

if TYPE_CHECKING:
    from wheelslim.elf.model import ElfFile

_DEBUG_PREFIXES = (".debug_", ".zdebug_", ".gdb_index", ".gnu_debugdata", ".gnu.debuglto_", ".stab")


class Weight(NamedTuple):
    """Sizes in bytes."""

    symbols: int
    debug: int


def unloaded_weight(elf: ElfFile) -> Weight:
    """Sum the symbol tables with their strings, and the debug sections, as far as they are not loaded."""
    symbols = debug = 0
    strings: set[int] = set()
    for section in elf.sections:
        if section.is_alloc:
            continue
        if section.name.startswith(_DEBUG_PREFIXES):
            debug += section.file_size
        elif section.sh_type in (SectionType.SYMTAB, SectionType.SYMTAB_SHNDX):
            symbols += section.file_size
            if section.sh_type == SectionType.SYMTAB and section.sh_link != elf.header.e_shstrndx:
                strings.add(section.sh_link)
    for index in strings:
        if index < len(elf.sections) and not elf.sections[index].is_alloc:
            symbols += elf.sections[index].file_size
    return Weight(symbols, debug)
