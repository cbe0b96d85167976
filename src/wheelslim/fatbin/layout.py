"""The fatbin format: magics, structs, kinds and flags, each with its evidence.

All numbers are little-endian. "measured" means seen in the wheels listed in docs/results.md, whose
sections parse to the last byte with these structs (cuobjdump 13.5 lists the same entries).
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct

CONTAINER_MAGIC = 0xBA55ED50
"""First word of a container (fatBinaryHeader in CUDA's fatbinary_section.h; documented)."""

CONTAINER_MAGIC_BYTES = CONTAINER_MAGIC.to_bytes(4, "little")

CONTAINER_VERSION = 1

CONTAINER_HEADER = Struct("<IHHQ")
"""Magic, version, header size, bytes of the entries that follow (documented)."""

WRAPPER_MAGIC = 0x466243B1
"""First word of a wrapper (__fatBinC_Wrapper_t, FATBINC_MAGIC in fatbinary_section.h; documented)."""

WRAPPER = Struct("<IIQQ")
"""Magic, version, virtual address of the container, and a file name or prelinked fatbins."""

WRAPPER_TARGET_OFFSET = 8
"""Where in a wrapper the address of its container lies (documented)."""

ENTRY_HEADER_MIN = 64
"""The smallest entry header; identifiers and extension blocks make it longer (measured: 64 to 144)."""

ENTRY = Struct("<HHIQIIHHIIIQQQ")
"""The first 64 bytes of an entry header (measured; docs/fatbin-format.md names every field)."""

ENTRY_VERSION = 0x0101
"""The only value seen at +2 (measured)."""

EXTENSION = Struct("<II")
"""At the extension offset (+20): where its data starts, from the header's start, and their length.

One zero byte follows the data (measured: nvcc 13.0, PTX without data and sm_100 with 36 bytes).
"""

CONCATENATED_HEAD = Struct("<II")
"""At +0x40 of a concatenated entry: number of sub-headers, bytes from here to their end (measured)."""

CONCATENATED_SUB = Struct("<HHIQIIHHIIIQQQ")
"""The first 64 bytes of a sub-header: an entry header with the offset in the plain stream at +4 and the
size there at +8. Identifier and extension block follow as in an entry (measured, fatbinary 13.5)."""

SECTION_ALIGNMENT = 8
"""Containers start at multiples of 8 in every section that was measured."""

DEVICE_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""The sections that nvcc puts containers into (documented for the first, measured for the second)."""


class EntryKind(IntEnum):
    """The kind of an entry (u16 at +0). Values: cuobjdump's listings against the headers, measured."""

    PTX = 0x1
    CUBIN = 0x2
    LTO_IR = 0x8
    CUBIN_VARIANT = 0x10
    INDEX = 0x20
    RELOCATABLE_PTX = 0x40
    TILE_IR = 0x80
    CONCATENATED = 0x100


class EntryFlag(IntFlag):
    """The flags of an entry (u64 at +40); measured with nvcc 13.0 and fatbinary 13.5."""

    BITS_64 = 0x1
    DEBUG = 0x2
    LINUX = 0x10
    WINDOWS = 0x40
    LZ4 = 0x2000
    ZSTD = 0x8000
    OBFUSCATED = 0x10000
    SUFFIX_ARCH = 0x100000
    SUFFIX_FAMILY = 0x200000
    SM_100_AND_LATER = 0x1000000
