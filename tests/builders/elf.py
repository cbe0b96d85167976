"""ELF64 shared objects from sections and segments, little-endian, without a linker.

A section has a fixed size and a function that fills it in once every address is known.
Spellings are those of the System V ABI (gABI 4.1, chapters 4 and 5).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
SHDR = struct.Struct("<IIQQQQIIQQ")
SYM = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")

ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_PHDR = 1, 2, 4, 6
PT_GNU_STACK = 0x6474E551
PF_X, PF_W, PF_R = 1, 2, 4
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS = range(1, 9)
SHT_DYNSYM, SHT_INIT_ARRAY, SHT_RELR, SHT_GNU_HASH = 11, 14, 19, 0x6FFFFFF6
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4

SECTION_HEADERS = "(section headers)"
"""Name of a pseudo section that puts the section header table into a segment."""


@dataclass(frozen=True)
class Layout:
    """Where everything came to lie; what a section's ``fill`` gets."""

    address: Mapping[str, int]
    offset: Mapping[str, int]
    size: Mapping[str, int]
    index: Mapping[str, int]


Fill: TypeAlias = "bytes | Callable[[Layout], bytes]"


@dataclass(frozen=True)
class Section:
    """A section; ``link`` and ``info`` name other sections."""

    name: str
    size: int
    fill: Fill = b""
    type: int = SHT_PROGBITS
    flags: int = SHF_ALLOC
    align: int = 8
    entsize: int = 0
    link: str = ""
    info: int = 0


@dataclass(frozen=True)
class Segment:
    """A PT_LOAD. The first one starts with the ELF header and the program header table."""

    flags: int
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Image:
    """A whole file to be laid out.

    ``align`` is p_align of the PT_LOADs, ``page`` what a segment's file offset is rounded up to
    (1 lets segments share file pages, as ld.lld does), ``headroom`` are free bytes after the program
    header table, ``extra`` are program headers that cover a section: (type, flags, section name, align).
    """

    machine: int
    segments: tuple[Segment, ...]
    align: int
    page: int
    headroom: int = 0
    extra: tuple[tuple[int, int, str, int], ...] = ()
    unloaded: tuple[Section, ...] = ()
    section_headers: bool = True

    def build(self) -> tuple[bytes, Layout]:
        """Give every section its place, fill it, and write the headers."""
        count = len(self.segments) + len(self.extra)
        table_end = EHDR.size + PHDR.size * count + self.headroom
        sections = [section for segment in self.segments for section in segment.sections] + list(
            self.unloaded
        )
        names, name_at = _string_table([section.name for section in sections] + [".shstrtab"])
        shnum = sum(section.name != SECTION_HEADERS for section in sections) + 2

        address: dict[str, int] = {}
        offset: dict[str, int] = {}
        size: dict[str, int] = {}
        loads = []
        position, virtual = table_end, table_end
        for number, segment in enumerate(self.segments):
            if number:
                position = round_up(position, self.page)
                virtual = round_up(virtual, self.align) + position % self.align
            start, virtual_start = (position, virtual) if number else (0, 0)
            file_end = position
            for section in segment.sections:
                length = SHDR.size * shnum if section.name == SECTION_HEADERS else section.size
                virtual = round_up(virtual, section.align)
                position = virtual - virtual_start + start
                address[section.name], offset[section.name], size[section.name] = virtual, position, length
                virtual += length
                if section.type != SHT_NOBITS:
                    file_end = position + length
            loads.append((segment.flags, start, virtual_start, file_end - start, virtual - virtual_start))
            position = file_end
        for section in self.unloaded:
            position = round_up(position, section.align)
            offset[section.name], size[section.name] = position, section.size
            address[section.name] = 0
            position += section.size

        data = bytearray(position)
        index = {
            section.name: number
            for number, section in enumerate((s for s in sections if s.name != SECTION_HEADERS), 1)
        }
        layout = Layout(address, offset, size, index)
        for section in sections:
            if section.type == SHT_NOBITS or section.name == SECTION_HEADERS:
                continue
            content = section.fill if isinstance(section.fill, bytes) else section.fill(layout)
            if len(content) > section.size:
                raise ValueError(f"{section.name}: {len(content)} bytes do not fit into {section.size}")
            data[offset[section.name] : offset[section.name] + len(content)] = content

        headers = [bytes(SHDR.size)]
        headers += [
            SHDR.pack(
                name_at[section.name],
                section.type,
                section.flags,
                address[section.name],
                offset[section.name],
                section.size,
                index.get(section.link, 0),
                section.info,
                section.align,
                section.entsize,
            )
            for section in sections
            if section.name != SECTION_HEADERS
        ]
        if not self.section_headers:
            shoff, shnum, shstrndx = 0, 0, 0
        else:
            headers.append(
                SHDR.pack(name_at[".shstrtab"], SHT_STRTAB, 0, 0, len(data), len(names), 0, 0, 1, 0)
            )
            data += names
            shstrndx = shnum - 1
            if SECTION_HEADERS in offset:
                shoff = offset[SECTION_HEADERS]
            else:
                shoff = round_up(len(data), 8)
                data = data.ljust(shoff + SHDR.size * shnum, b"\0")
            data[shoff : shoff + SHDR.size * shnum] = b"".join(headers)

        program = [
            PHDR.pack(PT_LOAD, flags, at, va, va, filesz, memsz, self.align)
            for flags, at, va, filesz, memsz in loads
        ]
        leading = []
        for kind, flags, name, align in self.extra:
            if kind == PT_PHDR:
                place = (EHDR.size, EHDR.size, EHDR.size, PHDR.size * count, PHDR.size * count)
                leading.append(PHDR.pack(kind, flags, *place, align))
            else:
                at, va, length = offset.get(name, 0), address.get(name, 0), size.get(name, 0)
                program.append(PHDR.pack(kind, flags, at, va, va, length, length, align))
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        header = EHDR.pack(
            ident,
            ET_DYN,
            self.machine,
            1,
            0,
            EHDR.size,
            shoff,
            0,
            EHDR.size,
            PHDR.size,
            count,
            SHDR.size,
            shnum,
            shstrndx,
        )
        data[: EHDR.size + PHDR.size * count] = header + b"".join(leading + program)
        return bytes(data), layout


def round_up(value: int, align: int) -> int:
    """Next multiple of ``align``."""
    return -(-value // align) * align


def strings(names: Sequence[str]) -> tuple[bytes, dict[str, int]]:
    """Make a string table; returns it and the offset of each name."""
    return _string_table(names)


def sysv_hash_table(names: Sequence[str]) -> bytes:
    """Make ``.hash`` with one bucket for the symbols 1…n (gABI, chapter 5, "Hash Table")."""
    chain = [0, *range(2, len(names) + 1), 0] if names else [0]
    return struct.pack(f"<II{1 + len(chain)}I", 1, len(chain), 1 if names else 0, *chain)


def gnu_hash_table(undefined: int, names: Sequence[str]) -> bytes:
    """Make ``.gnu.hash`` with one bucket and a bloom filter that lets everything pass.

    ``undefined`` symbols come first in the symbol table and are not in the hash.
    """
    first = undefined + 1
    hashes = [_gnu_hash(name) & ~1 for name in names]
    if hashes:
        hashes[-1] |= 1
    head = struct.pack("<IIIIQI", 1, first, 1, 6, 2**64 - 1, first if hashes else 0)
    return head + struct.pack(f"<{len(hashes)}I", *hashes)


def relr(places: Sequence[int]) -> bytes:
    """Encode addresses, multiples of 8, as DT_RELR words: an address, then bitmaps of 63 words each."""
    words, left = [], sorted(places)
    while left:
        base = left.pop(0)
        words.append(base)
        base += 8
        while left and left[0] < base + 63 * 8:
            bits = [place for place in left if place < base + 63 * 8]
            left = left[len(bits) :]
            words.append(sum(1 << ((place - base) // 8 + 1) for place in bits) | 1)
            base += 63 * 8
    return struct.pack(f"<{len(words)}Q", *words)


def with_header(data: bytes, **fields: int) -> bytes:
    """Return ``data`` with fields of the ELF header replaced, ``e_type`` or ``ei_class`` say."""
    names = ["e_ident", "e_type", "e_machine", "e_version", "e_entry", "e_phoff", "e_shoff", "e_flags"]
    names += ["e_ehsize", "e_phentsize", "e_phnum", "e_shentsize", "e_shnum", "e_shstrndx"]
    values = dict(zip(names, EHDR.unpack_from(data), strict=True))
    ident = bytearray(values["e_ident"])
    for position, name in ((4, "ei_class"), (5, "ei_data"), (6, "ei_version"), (7, "ei_osabi")):
        ident[position] = fields.pop(name, ident[position])
    values |= fields | {"e_ident": bytes(ident)}
    return EHDR.pack(*values.values()) + data[EHDR.size :]


def _string_table(names: Sequence[str]) -> tuple[bytes, dict[str, int]]:
    table, places = b"\0", {}
    for name in names:
        if name not in places:
            places[name] = len(table)
            table += name.encode() + b"\0"
    return table, places


def _gnu_hash(name: str) -> int:
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
