"""What a stripped library may lack: sections that nothing loads, by their names and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.elf.layout import SHN_ABS, SYM, SectionType
from wheelslim.elf.strip import StripMode
from wheelslim.errors import Place, VerifyError

if TYPE_CHECKING:
    from collections.abc import Collection

    from wheelslim.elf.model import Section
    from wheelslim.proof.side import Side

_DEBUG_NAMES = (".debug", ".zdebug", ".gdb_index", ".stab", ".line", ".gnu_debugaltlink")
_OTHER_NAMES = (
    ".comment",
    ".gnu.build.attributes",
    ".annobin.notes",
    ".gnu_debugdata",
    ".note.gnu.gold-version",
)
_SYMBOL_TYPES = (SectionType.SYMTAB, SectionType.STRTAB, SectionType.SYMTAB_SHNDX)
_RELOCATION_TYPES = (SectionType.REL, SectionType.RELA)
_SHNDX = slice(6, 8)
_ABSOLUTE = SHN_ABS.to_bytes(2, "little")


def may_be_gone(section: Section, mode: StripMode) -> bool:
    """Whether ``--strip`` in this mode takes a section away; never one that is loaded."""
    if mode is StripMode.NONE or section.is_alloc:
        return False
    if section.name.startswith(_DEBUG_NAMES) or section.sh_type in _RELOCATION_TYPES:
        return True
    return mode is StripMode.ALL and (
        section.sh_type in _SYMBOL_TYPES or section.name.startswith(_OTHER_NAMES)
    )


def compare_symbols(before: Side, old: Section, after: Side, new: Section, gone: Collection[int]) -> None:
    """Compare a symbol table that stays; symbols of sections that are gone may have become absolute.

    Raises:
        VerifyError: another difference.
    """
    position = 0
    pairs = zip(
        before.source.blocks(old.sh_offset, old.sh_size, block=SYM.size << 12),
        after.source.blocks(new.sh_offset, new.sh_size, block=SYM.size << 12),
        strict=True,
    )
    for one, other in pairs:
        if one != other:
            for start in range(0, len(one), SYM.size):
                was, now = one[start : start + SYM.size], bytearray(other[start : start + SYM.size])
                if int.from_bytes(was[_SHNDX], "little") in gone and now[_SHNDX] == SHN_ABS.to_bytes(
                    2, "little"
                ):
                    now[_SHNDX] = was[_SHNDX]
                if was != now:
                    raise VerifyError(
                        "a symbol differs", place=Place(section=old.name, offset=position + start)
                    )
        position += len(one)
