"""Sections that the loader never sees, and which of them may go.

What GNU ``strip`` keeps and tools still read stays too: ``.gnu_debuglink`` (it names a separate debug
file, whose checksum it holds), ``.note.stapsdt`` (probes of tracing tools). The build id is loaded and
so never in question. Sections of names that are not listed here stay, with a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.elf.filemap import Overlay
from wheelslim.elf.layout import (
    SHN_ABS,
    SHN_LORESERVE,
    SYM,
    ObjectType,
    SectionFlag,
    SectionType,
)
from wheelslim.elf.tables import blocks
from wheelslim.pieces import Data

if TYPE_CHECKING:
    from wheelslim.elf.model import ElfFile, Section
    from wheelslim.source import Source

_DEBUG = re.compile(r"\.z?debug(_.*)?|\.gdb_index|\.stab.*|\.line|\.gnu_debugaltlink")
_EXTRA = re.compile(
    r"\.comment|\.gnu\.build\.attributes.*|\.annobin\.notes|\.gnu_debugdata|\.note\.gnu\.gold-version"
)
_KEPT = re.compile(r"\.shstrtab|\.gnu_debuglink|\.note\.stapsdt")

_SYMBOLS = (SectionType.SYMTAB, SectionType.SYMTAB_SHNDX)
_RELOCATIONS = (SectionType.REL, SectionType.RELA)
_SHNDX_OFFSET = 6
_SHNDX_SHIFT = 8 * _SHNDX_OFFSET
_ABSOLUTE = SHN_ABS.to_bytes(2, "little")


class StripMode(Enum):
    """How much of what is not loaded goes (``--strip``)."""

    NONE = "none"
    DEBUG = "debug"
    """Debug information only: ``.symtab`` and ``.strtab`` stay."""
    ALL = "all"


@dataclass(frozen=True)
class Strip:
    """What goes, by index in the section header table.

    The headers of ``dropped`` are left out. Those of ``emptied`` become inactive (SHT_NULL): symbols
    hold the indexes of sections behind them. ``overlays`` make symbols of sections that go absolute;
    ``notes`` say what stayed although it is not loaded.
    """

    dropped: frozenset[int] = frozenset()
    emptied: frozenset[int] = frozenset()
    overlays: tuple[Overlay, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gone(self) -> frozenset[int]:
        """All sections whose bytes go."""
        return self.dropped | self.emptied

    def size(self, elf: ElfFile) -> int:
        """Bytes of the sections that go."""
        return sum(elf.sections[index].file_size for index in self.gone)


NOTHING_STRIPPED = Strip()


def plan_strip(source: Source, elf: ElfFile, mode: StripMode) -> Strip:
    """Decide which sections of a linked file go.

    Object files are left alone, since a linker needs their symbols; so are separate debug files.

    Raises:
        ArtifactError: a symbol table passes the end of the file.
    """
    if mode is StripMode.NONE or elf.header.e_type not in (ObjectType.DYN, ObjectType.EXEC):
        return NOTHING_STRIPPED
    if any(s.sh_type == SectionType.NOBITS and s.sh_flags & SectionFlag.EXECINSTR for s in elf.sections):
        return Strip(notes=("a separate debug file: its symbols and debug information stay",))
    gone = _unloaded(elf, mode)
    pinned = {index for index, section in enumerate(elf.sections) if section.is_alloc}
    overlays: list[Overlay] = []
    for index, section in enumerate(elf.sections):
        if section.sh_type == SectionType.SYMTAB and index not in gone:
            named, changes = _symbols(source, section, gone)
            pinned |= named
            if _may_go(elf, index):  # What a process may see stays as it is.
                overlays.extend(changes)
    last = max(pinned, default=0)
    unknown = sorted(
        {s.name for i, s in enumerate(elf.sections) if i not in gone and _is_unknown(elf, i, mode)}
    )
    return Strip(
        dropped=frozenset(index for index in gone if index > last),
        emptied=frozenset(index for index in gone if index < last),
        overlays=tuple(overlays),
        notes=(f"kept, though not loaded: {', '.join(unknown)}",) if unknown else (),
    )


def _unloaded(elf: ElfFile, mode: StripMode) -> set[int]:
    """Return the indexes of what goes by its name or type, and of what belongs to that."""
    free = [index for index in range(1, len(elf.sections)) if _may_go(elf, index)]
    gone = {index for index in free if _goes(elf.sections[index], mode)}
    for index in free:
        section = elf.sections[index]
        if section.sh_type in _RELOCATIONS and {section.sh_link, section.sh_info} & gone:
            gone.add(index)
    if mode is StripMode.ALL:
        needed = {section.sh_link for index, section in enumerate(elf.sections) if index not in gone}
        gone.update(i for i in free if elf.sections[i].sh_type == SectionType.STRTAB and i not in needed)
    return gone


def _may_go(elf: ElfFile, index: int) -> bool:
    """Whether the loader never sees the section: not allocated, and no program header covers it."""
    section = elf.sections[index]
    return (
        bool(section.sh_type)
        and not section.is_alloc
        and index != elf.header.e_shstrndx
        and not any(
            s.p_filesz and s.p_offset < section.file_end and section.sh_offset < s.file_end
            for s in elf.segments
        )
    )


def _goes(section: Section, mode: StripMode) -> bool:
    if section.sh_type in (SectionType.PROGBITS, SectionType.STRTAB) and _DEBUG.fullmatch(section.name):
        return True
    if mode is StripMode.DEBUG:
        return False
    extra = section.sh_type in (SectionType.PROGBITS, SectionType.NOTE) and _EXTRA.fullmatch(section.name)
    return section.sh_type in _SYMBOLS or bool(extra)


def _is_unknown(elf: ElfFile, index: int, mode: StripMode) -> bool:
    """Whether a section that stays deserves a word: nothing here says why it should."""
    section = elf.sections[index]
    if not section.sh_type or section.is_alloc or index == elf.header.e_shstrndx or not section.file_size:
        return False
    if mode is StripMode.DEBUG and (
        section.sh_type in (*_SYMBOLS, *_RELOCATIONS, SectionType.STRTAB) or _EXTRA.fullmatch(section.name)
    ):
        return False
    return not _KEPT.fullmatch(section.name)


def _symbols(source: Source, table: Section, gone: set[int]) -> tuple[set[int], list[Overlay]]:
    """Return the sections that the symbols of a kept table name, and changes to those of gone ones.

    They are the symbols of the sections themselves. Taking them out would renumber the others, so
    they become absolute.
    """
    named: set[int] = set()
    changes: list[Overlay] = []
    position = table.sh_offset
    for words in blocks(source, table.sh_offset, table.sh_size, SYM.size):
        sections = [word >> _SHNDX_SHIFT for word in words[0::3]]
        used = set(sections)
        named |= {index for index in used if 0 < index < SHN_LORESERVE and index not in gone}
        if used & gone:
            changes.extend(
                Overlay(position + place * SYM.size + _SHNDX_OFFSET, (Data(_ABSOLUTE),))
                for place, index in enumerate(sections)
                if index in gone
            )
        position += len(sections) * SYM.size
    return named, changes
