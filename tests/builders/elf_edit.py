"""Lies in an ELF file: single fields of its headers and tables overwritten."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from builders.elf import PHDR, SHDR

if TYPE_CHECKING:
    from collections.abc import Iterator

SEGMENT_FIELDS = {
    "type": (0, "<I"),
    "flags": (4, "<I"),
    "offset": (8, "<Q"),
    "vaddr": (16, "<Q"),
    "paddr": (24, "<Q"),
    "filesz": (32, "<Q"),
    "memsz": (40, "<Q"),
    "align": (48, "<Q"),
}
SECTION_FIELDS = {
    "name": (0, "<I"),
    "type": (4, "<I"),
    "flags": (8, "<Q"),
    "addr": (16, "<Q"),
    "offset": (24, "<Q"),
    "size": (32, "<Q"),
    "link": (40, "<I"),
    "info": (44, "<I"),
    "addralign": (48, "<Q"),
    "entsize": (56, "<Q"),
}
PT_LOAD = 1


class ElfEdit:
    """A copy of an ELF file whose fields can be read and set: ``edit.section(".text", size=8)``."""

    def __init__(self, data: bytes) -> None:
        """Copy ``data``."""
        self._data = bytearray(data)

    def built(self) -> bytes:
        """Return the file as it is now."""
        return bytes(self._data)

    def put(self, offset: int, data: bytes) -> None:
        """Overwrite bytes at a file offset."""
        self._data[offset : offset + len(data)] = data

    def append(self, data: bytes) -> int:
        """Add bytes behind the file, at a multiple of 4,096; returns their offset."""
        offset = -(-len(self._data) // 4096) * 4096
        self._data[offset:] = bytes(offset - len(self._data)) + data
        return offset

    def segment(self, kind: int, nth: int = 0, **fields: int) -> None:
        """Set fields of the nth program header of a type: ``offset=``, ``vaddr=``, …, without ``p_``."""
        start = [at for at, p_type in self._program_headers() if p_type == kind][nth]
        for name, value in fields.items():
            at, word = SEGMENT_FIELDS[name]
            struct.pack_into(word, self._data, start + at, value)

    def segment_field(self, kind: int, name: str, nth: int = 0) -> int:
        """Read a field of the nth program header of a type."""
        start = [at for at, p_type in self._program_headers() if p_type == kind][nth]
        at, word = SEGMENT_FIELDS[name]
        return self._word(word, start + at)

    def swap_loads(self, one: int, other: int) -> None:
        """Exchange two PT_LOADs in the table."""
        places = [at for at, p_type in self._program_headers() if p_type == PT_LOAD]
        first, second = (bytes(self._data[places[n] : places[n] + PHDR.size]) for n in (one, other))
        self.put(places[one], second)
        self.put(places[other], first)

    def section(self, name: str, /, **fields: int) -> None:
        """Set fields of the first section of that name: ``type=``, ``offset=``, …, without ``sh_``."""
        start = self._section_header(name)
        for field, value in fields.items():
            at, word = SECTION_FIELDS[field]
            struct.pack_into(word, self._data, start + at, value)

    def section_field(self, name: str, field: str) -> int:
        """Read a field of the first section of that name."""
        at, word = SECTION_FIELDS[field]
        return self._word(word, self._section_header(name) + at)

    def dynamic(self, tag: int, value: int) -> None:
        """Set the value of a dynamic tag."""
        start, size = (self.section_field(".dynamic", field) for field in ("offset", "size"))
        for at in range(start, start + size, 16):
            if struct.unpack_from("<q", self._data, at)[0] == tag:
                struct.pack_into("<Q", self._data, at + 8, value)
                return
        raise KeyError(tag)

    def relocation(self, nth: int, **fields: int) -> None:
        """Set ``offset``, ``info`` or ``addend`` of the nth entry of ``.rela.dyn``."""
        start = self.section_field(".rela.dyn", "offset") + 24 * nth
        for field, value in fields.items():
            at = ("offset", "info", "addend").index(field) * 8
            struct.pack_into("<Q", self._data, start + at, value % (1 << 64))

    def relocation_to(self, address: int) -> int:
        """The number of the first entry of ``.rela.dyn`` whose addend is this address."""
        start, size = (self.section_field(".rela.dyn", field) for field in ("offset", "size"))
        addends = [self._word("<Q", at + 16) for at in range(start, start + size, 24)]
        return addends.index(address)

    def _program_headers(self) -> Iterator[tuple[int, int]]:
        start, count = self._word("<Q", 32), self._word("<H", 56)
        for at in range(start, start + count * PHDR.size, PHDR.size):
            yield at, self._word("<I", at)

    def _section_header(self, name: str) -> int:
        start, count, names = self._word("<Q", 40), self._word("<H", 60), self._word("<H", 62)
        table = self._word("<Q", start + names * SHDR.size + 24)
        for at in range(start, start + count * SHDR.size, SHDR.size):
            begin = table + self._word("<I", at)
            if self._data[begin : self._data.index(0, begin)] == name.encode():
                return at
        raise KeyError(name)

    def _word(self, word: str, at: int) -> int:
        value: int = struct.unpack_from(word, self._data, at)[0]
        return value
