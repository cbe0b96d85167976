"""What an ELF file says of itself: header, segments, sections."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from wheelslim.elf.layout import EHDR, PHDR, SHDR, SectionFlag, SectionType, SegmentType


class Header(NamedTuple):
    """The ELF header; field names as in the gABI, offsets in bytes."""

    e_ident: bytes
    e_type: int
    e_machine: int
    e_version: int
    e_entry: int
    e_phoff: int
    e_shoff: int
    e_flags: int
    e_ehsize: int
    e_phentsize: int
    e_phnum: int
    e_shentsize: int
    e_shnum: int
    e_shstrndx: int

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        return EHDR.pack(*self)


class Segment(NamedTuple):
    """A program header; ``p_offset`` is a file offset, ``p_vaddr`` a virtual address, sizes in bytes."""

    p_type: int
    p_flags: int
    p_offset: int
    p_vaddr: int
    p_paddr: int
    p_filesz: int
    p_memsz: int
    p_align: int

    @property
    def is_load(self) -> bool:
        """Whether the loader maps it."""
        return self.p_type == SegmentType.LOAD

    @property
    def file_end(self) -> int:
        """The first file offset after its bytes."""
        return self.p_offset + self.p_filesz

    @property
    def address_end(self) -> int:
        """The first virtual address after its memory."""
        return self.p_vaddr + self.p_memsz

    def pack(self) -> bytes:
        """Return the 56 bytes."""
        return PHDR.pack(*self)


class Section(NamedTuple):
    """A section header with its name; ``sh_offset`` is a file offset, ``sh_addr`` a virtual address."""

    name: str
    sh_name: int
    sh_type: int
    sh_flags: int
    sh_addr: int
    sh_offset: int
    sh_size: int
    sh_link: int
    sh_info: int
    sh_addralign: int
    sh_entsize: int

    @property
    def is_alloc(self) -> bool:
        """Whether it occupies memory when the file is loaded."""
        return bool(self.sh_flags & SectionFlag.ALLOC)

    @property
    def file_size(self) -> int:
        """Bytes that it takes in the file: none for NOBITS."""
        return 0 if self.sh_type in (SectionType.NOBITS, SectionType.NULL) else self.sh_size

    @property
    def file_end(self) -> int:
        """The first file offset after its bytes."""
        return self.sh_offset + self.file_size

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        return SHDR.pack(*self[1:])


@dataclass(frozen=True)
class ElfFile:
    """A parsed ELF64 little-endian file of ``size`` bytes; ``sections`` is empty where it has no headers."""

    header: Header
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    size: int

    @cached_property
    def loads(self) -> tuple[Segment, ...]:
        """The PT_LOAD segments in table order."""
        return tuple(segment for segment in self.segments if segment.is_load)

    @cached_property
    def loads_ascend(self) -> bool:
        """Whether the PT_LOADs ascend by address without overlap, as the gABI demands."""
        return all(one.address_end <= other.p_vaddr for one, other in pairwise(self.loads))

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(load.p_vaddr for load in self.loads)

    def section(self, name: str) -> Section | None:
        """Return the first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def load_at(self, address: int, size: int = 1) -> Segment | None:
        """Return the first PT_LOAD that has file bytes for all of a virtual address range."""
        loads = self.loads
        if self.loads_ascend:
            last = bisect_right(self._starts, address)
            loads = loads[last - 1 : last] if last else ()
        for load in loads:
            if 0 <= address - load.p_vaddr <= load.p_filesz - size:
                return load
        return None

    def offset_of(self, address: int, size: int = 1) -> int | None:
        """Map a virtual address range that has file bytes in one segment to its file offset."""
        load = self.load_at(address, size)
        return None if load is None else load.p_offset + address - load.p_vaddr
