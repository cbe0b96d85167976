"""Bytes to ElfFile: headers only, checked against the size of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.elf.layout import (
    DYN,
    EHDR,
    EI_CLASS,
    EI_DATA,
    ELF_MAGIC,
    ELFCLASS64,
    ELFDATA2LSB,
    PHDR,
    SHDR,
    DynamicTag,
    SegmentType,
)
from wheelslim.elf.model import ElfFile, Header, Section, Segment
from wheelslim.errors import ElfFormatError, Place

if TYPE_CHECKING:
    from wheelslim.source import Source

MAX_SECTIONS = 65_279
MAX_SEGMENTS = 4096
"""patchelf and split holes add some; the largest count that was measured is 40."""
MAX_HEADER_PAIRS = 1 << 22
"""Segments times sections: a bound on comparing each with each."""
MAX_STRING_TABLE = 16 << 20
"""Bytes of the section name table, and of all names that sections take from it."""
MAX_DYNAMIC = 1 << 16


def is_elf(head: bytes) -> bool:
    """Whether the first bytes are those of an ELF file of any class."""
    return head[:4] == ELF_MAGIC


def is_elf64(head: bytes) -> bool:
    """Whether the first bytes are those of a little-endian 64-bit ELF file, the only kind that is cut."""
    return is_elf(head) and head[EI_CLASS : EI_DATA + 1] == bytes((ELFCLASS64, ELFDATA2LSB))


def read_elf(source: Source) -> ElfFile:
    """Read the header, the program headers and the section headers.

    Format: System V gABI, ELF64. Offsets are bytes from the start of ``source``.

    Raises:
        ElfFormatError: no ELF64 little-endian file, or a table that passes the end of the file.
    """
    if source.size < EHDR.size:
        raise _fault("the ELF header is cut off", 0, f"{EHDR.size} bytes", f"{source.size} bytes")
    raw = source.read(0, EHDR.size)
    if not is_elf(raw):
        raise _fault("no ELF file", 0, ELF_MAGIC.hex(" "), raw[:4].hex(" "))
    if not is_elf64(raw):
        raise _fault(
            "no 64-bit little-endian ELF file", 4, "class 2, data 1", f"class {raw[4]}, data {raw[5]}"
        )
    header = Header(*EHDR.unpack(raw))
    if header.e_phnum * header.e_shnum > MAX_HEADER_PAIRS:
        found = f"{header.e_phnum} segments, {header.e_shnum} sections"
        raise _fault("too many headers", 56, f"at most {MAX_HEADER_PAIRS} pairs", found)
    segments = _read_segments(source, header)
    return ElfFile(header, segments, _read_sections(source, header), source.size)


def _read_segments(source: Source, header: Header) -> tuple[Segment, ...]:
    if not header.e_phnum:
        return ()
    if header.e_phentsize != PHDR.size or header.e_phnum > MAX_SEGMENTS:
        expected = f"at most {MAX_SEGMENTS} entries of {PHDR.size} bytes"
        found = f"{header.e_phnum} of {header.e_phentsize}"
        raise _fault("odd program header table", header.e_phoff, expected, found)
    raw = _read_table(source, header.e_phoff, header.e_phnum * PHDR.size, "program header table")
    segments = tuple(Segment(*fields) for fields in PHDR.iter_unpack(raw))
    for segment in segments:
        if segment.p_filesz and segment.file_end > source.size:
            raise _fault(
                "a segment passes the end of the file", segment.p_offset, f"{source.size}", segment.file_end
            )
        if segment.is_load and segment.p_memsz < segment.p_filesz:
            raise _fault(
                "a PT_LOAD is smaller in memory than in the file",
                segment.p_offset,
                f"p_memsz of at least {segment.p_filesz:#x}",
                f"{segment.p_memsz:#x}",
            )
    return segments


def _read_sections(source: Source, header: Header) -> tuple[Section, ...]:
    if not header.e_shoff or not header.e_shnum:
        return ()
    if header.e_shentsize != SHDR.size or header.e_shnum > MAX_SECTIONS:
        expected = f"at most {MAX_SECTIONS} entries of {SHDR.size} bytes"
        found = f"{header.e_shnum} of {header.e_shentsize}"
        raise _fault("odd section header table", header.e_shoff, expected, found)
    raw = _read_table(source, header.e_shoff, header.e_shnum * SHDR.size, "section header table")
    fields = list(SHDR.iter_unpack(raw))
    names = b""
    if header.e_shstrndx < len(fields):
        _, _, _, _, offset, size, _, _, _, _ = fields[header.e_shstrndx]
        if size > MAX_STRING_TABLE:
            raise _fault("the section name table is too large", offset, f"{MAX_STRING_TABLE} bytes", size)
        names = _read_table(source, offset, size, "section name table")
    sections = []
    budget = MAX_STRING_TABLE
    for field in fields:
        section = Section(_name(names, field[0], budget), *field)
        budget -= len(section.name)
        if section.file_size and section.file_end > source.size:
            raise _fault(
                f"section {section.name} passes the end of the file",
                section.sh_offset,
                f"{source.size}",
                section.file_end,
            )
        sections.append(section)
    return tuple(sections)


def _name(names: bytes, offset: int, budget: int) -> str:
    end = names.find(b"\0", offset, offset + budget)
    if end < 0:
        if offset + budget < len(names):
            raise _fault("the section names are too long", offset, f"{MAX_STRING_TABLE} bytes", "more")
        end = len(names)
    return names[offset:end].decode("utf-8", "backslashreplace")


def _read_table(source: Source, offset: int, size: int, what: str) -> bytes:
    if offset + size > source.size:
        raise _fault(f"the {what} passes the end of the file", offset, f"{source.size}", offset + size)
    return source.read(offset, size)


def read_dynamic(source: Source, elf: ElfFile) -> tuple[tuple[int, int, int], ...]:
    """Return the dynamic table as (file offset of the entry, d_tag, d_val) up to DT_NULL.

    Raises:
        ElfFormatError: the PT_DYNAMIC segment passes the end of the file or is absurdly large.
    """
    segment = next((s for s in elf.segments if s.p_type == SegmentType.DYNAMIC), None)
    if segment is None or not segment.p_filesz:
        return ()
    if segment.p_filesz > MAX_DYNAMIC * DYN.size:
        raise _fault("the dynamic table is too large", segment.p_offset, f"{MAX_DYNAMIC} entries", "more")
    raw = _read_table(source, segment.p_offset, segment.p_filesz, "dynamic table")
    entries = []
    for index, (tag, value) in enumerate(DYN.iter_unpack(raw[: len(raw) - len(raw) % DYN.size])):
        if tag == DynamicTag.NULL:
            break
        entries.append((segment.p_offset + index * DYN.size, tag, value))
    return tuple(entries)


def _fault(what: str, offset: int, expected: str, found: object) -> ElfFormatError:
    return ElfFormatError(what, place=Place(offset=offset), expected=expected, found=str(found))
