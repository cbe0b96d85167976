"""ELF64 little-endian structs and constants, spelt as in the System V gABI and its processor supplements."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct

ELF_MAGIC = b"\x7fELF"
ELFCLASS64 = 2
ELFDATA2LSB = 1
EI_CLASS = 4
EI_DATA = 5
EI_ABIVERSION = 8

EHDR = Struct("<16sHHIQQQIHHHHHH")
PHDR = Struct("<IIQQQQQQ")
SHDR = Struct("<IIQQQQIIQQ")
DYN = Struct("<qQ")
RELA = Struct("<QQq")
SYM = Struct("<IBBHQQ")

EHDR_PHOFF_OFFSET = 32
EHDR_SHOFF_OFFSET = 40
SHN_LORESERVE = 0xFF00
SHN_ABS = 0xFFF1


class ObjectType(IntEnum):
    """``e_type``."""

    REL = 1
    EXEC = 2
    DYN = 3


class Machine(IntEnum):
    """``e_machine``; 190 is what cubins carry (EM_CUDA)."""

    X86_64 = 62
    AARCH64 = 183
    CUDA = 190


class SegmentType(IntEnum):
    """``p_type``."""

    LOAD = 1
    DYNAMIC = 2
    INTERP = 3
    NOTE = 4
    PHDR = 6
    TLS = 7
    GNU_EH_FRAME = 0x6474E550
    GNU_STACK = 0x6474E551
    GNU_RELRO = 0x6474E552
    GNU_PROPERTY = 0x6474E553


class SegmentFlag(IntFlag):
    """``p_flags``."""

    X = 1
    W = 2
    R = 4


class SectionType(IntEnum):
    """``sh_type``."""

    NULL = 0
    PROGBITS = 1
    SYMTAB = 2
    STRTAB = 3
    RELA = 4
    HASH = 5
    DYNAMIC = 6
    NOTE = 7
    NOBITS = 8
    REL = 9
    DYNSYM = 11
    GROUP = 17
    SYMTAB_SHNDX = 18
    GNU_HASH = 0x6FFFFFF6


class SectionFlag(IntFlag):
    """``sh_flags``."""

    WRITE = 1
    ALLOC = 2
    EXECINSTR = 4
    INFO_LINK = 0x40


class DynamicTag(IntEnum):
    """``d_tag``."""

    NULL = 0
    NEEDED = 1
    PLTRELSZ = 2
    PLTGOT = 3
    HASH = 4
    STRTAB = 5
    SYMTAB = 6
    RELA = 7
    RELASZ = 8
    STRSZ = 10
    INIT = 12
    FINI = 13
    SONAME = 14
    REL = 17
    RELSZ = 18
    JMPREL = 23
    INIT_ARRAY = 25
    FINI_ARRAY = 26
    INIT_ARRAYSZ = 27
    FINI_ARRAYSZ = 28
    PREINIT_ARRAY = 32
    PREINIT_ARRAYSZ = 33
    RELRSZ = 35
    RELR = 36
    GNU_HASH = 0x6FFFFEF5
    VERSYM = 0x6FFFFFF0
    VERDEF = 0x6FFFFFFC
    VERNEED = 0x6FFFFFFE


TABLES: dict[int, int] = {
    DynamicTag.STRTAB: DynamicTag.STRSZ,
    DynamicTag.RELA: DynamicTag.RELASZ,
    DynamicTag.REL: DynamicTag.RELSZ,
    DynamicTag.JMPREL: DynamicTag.PLTRELSZ,
    DynamicTag.RELR: DynamicTag.RELRSZ,
    DynamicTag.INIT_ARRAY: DynamicTag.INIT_ARRAYSZ,
    DynamicTag.FINI_ARRAY: DynamicTag.FINI_ARRAYSZ,
    DynamicTag.PREINIT_ARRAY: DynamicTag.PREINIT_ARRAYSZ,
}
"""Dynamic tags that name a table, and the tag with its size in bytes."""

POINTERS = frozenset(
    {
        *TABLES,
        DynamicTag.PLTGOT,
        DynamicTag.HASH,
        DynamicTag.SYMTAB,
        DynamicTag.INIT,
        DynamicTag.FINI,
        DynamicTag.GNU_HASH,
        DynamicTag.VERSYM,
        DynamicTag.VERDEF,
        DynamicTag.VERNEED,
    }
)
"""Dynamic tags whose value is an address in the file (gABI, and the GNU additions)."""

MOVED_TAGS = frozenset(
    {
        DynamicTag.HASH,
        DynamicTag.GNU_HASH,
        DynamicTag.SYMTAB,
        DynamicTag.STRTAB,
        DynamicTag.VERSYM,
        DynamicTag.VERDEF,
        DynamicTag.VERNEED,
    }
)
"""Dynamic tags whose value is the address of a section that can move."""


RELATIVE: dict[int, int] = {Machine.X86_64: 8, Machine.AARCH64: 1027}
"""R_X86_64_RELATIVE and R_AARCH64_RELATIVE: the loader stores base + addend."""

PAGE_SIZE: dict[int, int] = {Machine.X86_64: 0x1000, Machine.AARCH64: 0x10000}
"""The largest page that a kernel for the machine uses; cuts are whole pages of this size."""
