"""The names of a file's sections from its first 64 bytes and a part near its end, without the rest.

Linkers put the table of the names close before the section headers (measured on 90 libraries: 5 KB at
most, but for those of lld, which puts symbol names between).
"""

from __future__ import annotations

from wheelslim.elf.layout import EHDR, SHDR
from wheelslim.elf.model import Header

MARGIN = 1 << 16
"""Bytes before the section headers that are looked at, too."""

_MAX_SECTIONS = 1 << 12


def naming_part(head: bytes, size: int) -> tuple[int, int] | None:
    """Return offset and size of the part from which ``section_names`` may tell; None where there is none.

    ``head`` are the first 64 bytes of an ELF64 file of ``size`` bytes.
    """
    header = Header(*EHDR.unpack(head))
    end = header.e_shoff + header.e_shnum * SHDR.size
    usual = header.e_shentsize == SHDR.size and 0 < header.e_shnum <= _MAX_SECTIONS
    if not usual or header.e_shoff < EHDR.size or end > size:
        return None
    start = max(0, header.e_shoff - MARGIN)
    return start, end - start


def section_names(head: bytes, start: int, part: bytes) -> frozenset[bytes] | None:
    """Return the names of all sections; None where ``part``, from offset ``start`` on, lacks some."""
    header = Header(*EHDR.unpack(head))
    table = part[header.e_shoff - start : header.e_shoff - start + header.e_shnum * SHDR.size]
    fields = list(SHDR.iter_unpack(table))
    if header.e_shstrndx >= len(fields) or len(fields) != header.e_shnum:
        return None
    offset, size = fields[header.e_shstrndx][4:6]
    if offset < start or offset + size > start + len(part):
        return None
    names = part[offset - start : offset - start + size]
    found = set()
    for name_offset, *_ in fields:
        end = names.find(b"\0", name_offset)
        if name_offset >= len(names) or end < 0:
            return None
        found.add(names[name_offset:end])
    return frozenset(found)
