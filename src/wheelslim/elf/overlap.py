"""Header tables and sections that take the same bytes of the file. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.elf.layout import EHDR, PHDR, SHDR

if TYPE_CHECKING:
    from wheelslim.elf.model import ElfFile

ELF_HEADER, PROGRAM_HEADERS, SECTION_HEADERS = -1, -2, -3
"""The header tables among the indexes of sections."""


def sharing_bytes(elf: ElfFile) -> frozenset[int]:
    """Return the indexes of sections, and of header tables, that share bytes with another."""
    header = elf.header
    taken = [(s.sh_offset, s.file_end, index) for index, s in enumerate(elf.sections) if s.file_size]
    taken.append((0, EHDR.size, ELF_HEADER))
    for start, size, index in (
        (header.e_phoff, header.e_phnum * PHDR.size, PROGRAM_HEADERS),
        (header.e_shoff, header.e_shnum * SHDR.size, SECTION_HEADERS),
    ):
        if size:
            taken.append((start, start + size, index))
    sharing: set[int] = set()
    reach, holder = 0, ELF_HEADER
    for start, end, index in sorted(taken):
        if start < reach:
            sharing |= {index, holder}
        if end > reach:
            reach, holder = end, index
    return frozenset(sharing)
