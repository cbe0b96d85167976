"""Large CUDA libraries made as a stream: gigabytes in seconds, with a few megabytes of memory.

Such a library is not for running: it has the headers, relocations, wrappers and containers of one.
Cubins come from a pool, and hold noise that deflates by 1 %, as compressed cubins do; host code from one
that deflates to a third.
"""

from __future__ import annotations

import random
import struct
import sys
from array import array
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from builders import elf, fatbin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PAGE = 0x1000
_HEADERS = 0x400
"""Room for the ELF header and 17 program headers, of which a few are free."""

_POOL_BYTES = 4 << 20
_HOST_CHUNK = 1 << 20
_WRAPPER_SIZE = 24
_RELATIVE = 8
"""R_X86_64_RELATIVE."""


@dataclass(frozen=True)
class StreamedLibrary:
    """An x86-64 library of ``containers`` containers, one entry of ``payload`` bytes for each of ``words``.

    ``words`` are those of cubins, ``payload`` is a multiple of 8 from 512; ``host`` are bytes of host
    code, ``relocations`` further relative relocations, which point into the host code.
    """

    containers: int
    payload: int = 1 << 18
    words: tuple[str, ...] = ("sm_80", "sm_86", "sm_90", "sm_100")
    host: int = 1 << 20
    relocations: int = 0

    @property
    def container_size(self) -> int:
        """Bytes of one container; they follow one another without padding."""
        return fatbin.CONTAINER_HEADER.size + sum(
            entry.header_size + self.payload for entry in self._templates
        )

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._places["headers"] + elf.SHDR.size * (len(_SECTIONS) + 1)

    def blocks(self) -> Iterator[bytes]:
        """Yield the file from its first byte to its last."""
        places = self._places
        position = 0
        for name, parts in self._parts():
            yield bytes(places[name] - position)
            position = places[name]
            for part in parts:
                yield part
                position += len(part)
        assert position == self.size

    def write(self, path: Path) -> Path:
        """Write the file."""
        with path.open("wb") as file:
            file.writelines(self.blocks())
        return path

    @cached_property
    def _templates(self) -> tuple[fatbin.Entry, ...]:
        return tuple(fatbin.entry(word, size=8) for word in self.words)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        count = self.containers
        return {
            ".hash": 16,
            ".dynsym": elf.SYM.size,
            ".dynstr": 1,
            ".rela.dyn": elf.RELA.size * (count + self.relocations),
            ".text": elf.round_up(self.host, _HOST_CHUNK),
            ".nv_fatbin": count * self.container_size,
            ".nvFatBinSegment": count * _WRAPPER_SIZE,
            ".data": 8 * self.relocations,
            ".dynamic": 16 * 9,
        }

    @cached_property
    def _places(self) -> dict[str, int]:
        """File offset of each section, which is its address too."""
        places = {"start": 0}
        position = _HEADERS
        for name, size in self._sizes.items():
            starts_segment = name in (".text", ".nv_fatbin", ".nvFatBinSegment")
            position = elf.round_up(position, PAGE if starts_segment else 8)
            places[name] = position
            position += size
        places[".shstrtab"] = position
        places["headers"] = elf.round_up(position + len(_NAMES), 8)
        return places

    def _parts(self) -> Iterator[tuple[str, Iterable[bytes]]]:
        places, sizes = self._places, self._sizes
        count, slots = self.containers, places[".data"]
        yield "start", (self._headers(),)
        yield ".hash", (struct.pack("<IIII", 1, 1, 0, 0), bytes(elf.SYM.size), b"\0")
        wrappers = places[".nvFatBinSegment"] + 8
        first = range(wrappers, wrappers + _WRAPPER_SIZE * count, _WRAPPER_SIZE)
        targets = self._targets()
        more = range(slots, slots + 8 * self.relocations, 8)
        pointed = range(places[".text"], places[".text"] + self.relocations)
        yield ".rela.dyn", (_relocations(first, targets), _relocations(more, pointed))
        chunk = _host_chunk()
        yield ".text", (chunk for _ in range(sizes[".text"] // len(chunk)))
        yield ".nv_fatbin", self._containers()
        segment = array("Q", bytes(_WRAPPER_SIZE * count))
        segment[0::3] = array("Q", [fatbin.WRAPPER_MAGIC | 1 << 32]) * count
        segment[1::3] = array("Q", targets)
        yield ".nvFatBinSegment", (_little(segment),)
        yield ".data", (_little(array("Q", pointed)),)
        yield ".dynamic", (self._dynamic(),)
        yield ".shstrtab", (_NAMES,)
        yield "headers", (self._section_headers(),)

    def _targets(self) -> range:
        start = self._places[".nv_fatbin"]
        return range(start, start + self.containers * self.container_size, self.container_size)

    def _containers(self) -> Iterator[bytes]:
        pools = [_pool(word, self.payload) for word in self.words]
        body = self.container_size - fatbin.CONTAINER_HEADER.size
        head = fatbin.CONTAINER_HEADER.pack(fatbin.CONTAINER_MAGIC, 1, 16, body)
        headers = [_entry_header(entry, self.payload) for entry in self._templates]
        headers[0] = head + headers[0]
        for number in range(self.containers):
            for header, pool in zip(headers, pools, strict=True):
                yield header
                yield pool[number % len(pool)]

    def _headers(self) -> bytes:
        places = self._places
        ends = [places[".text"], places[".nv_fatbin"], places[".nvFatBinSegment"], places[".shstrtab"]]
        starts = [0, *ends[:-1]]
        flags = (elf.PF_R, elf.PF_R | elf.PF_X, elf.PF_R, elf.PF_R | elf.PF_W)
        program = b"".join(
            elf.PHDR.pack(elf.PT_LOAD, flag, start, start, start, end - start, end - start, PAGE)
            for flag, start, end in zip(flags, starts, ends, strict=True)
        )
        dynamic, size = places[".dynamic"], self._sizes[".dynamic"]
        rw = elf.PF_R | elf.PF_W
        program += elf.PHDR.pack(elf.PT_DYNAMIC, rw, dynamic, dynamic, dynamic, size, size, 8)
        program += elf.PHDR.pack(elf.PT_GNU_STACK, rw, 0, 0, 0, 0, 0, 16)
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        count = len(program) // elf.PHDR.size
        header = elf.EHDR.pack(
            ident, elf.ET_DYN, 62, 1, 0, elf.EHDR.size, places["headers"], 0,
            elf.EHDR.size, elf.PHDR.size, count, elf.SHDR.size, len(_SECTIONS) + 1, len(_SECTIONS),
        )  # fmt: skip
        return header + program

    def _dynamic(self) -> bytes:
        places = self._places
        tags = (
            (4, places[".hash"]), (5, places[".dynstr"]), (6, places[".dynsym"]), (10, 1), (11, elf.SYM.size),
            (7, places[".rela.dyn"]), (8, self._sizes[".rela.dyn"]), (9, elf.RELA.size), (0, 0),
        )  # fmt: skip
        return b"".join(struct.pack("<qQ", tag, value) for tag, value in tags)

    def _section_headers(self) -> bytes:
        headers = [bytes(elf.SHDR.size)]
        for name, (kind, flags, link, entsize, info) in _SECTIONS.items():
            size = len(_NAMES) if name == ".shstrtab" else self._sizes[name]
            place = self._places[name]
            index = list(_SECTIONS).index(link) + 1 if link else 0
            name_at = _NAMES.index(name.encode() + b"\0")
            headers.append(
                elf.SHDR.pack(
                    name_at, kind, flags, place if flags else 0, place, size, index, info, 8, entsize
                )
            )
        return b"".join(headers)


_A, _AW, _AX = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_WRITE, elf.SHF_ALLOC | elf.SHF_EXECINSTR
_SECTIONS: dict[str, tuple[int, int, str, int, int]] = {
    ".hash": (elf.SHT_HASH, _A, ".dynsym", 4, 0),
    ".dynsym": (elf.SHT_DYNSYM, _A, ".dynstr", elf.SYM.size, 1),
    ".dynstr": (elf.SHT_STRTAB, _A, "", 0, 0),
    ".rela.dyn": (elf.SHT_RELA, _A, ".dynsym", elf.RELA.size, 0),
    ".text": (elf.SHT_PROGBITS, _AX, "", 0, 0),
    ".nv_fatbin": (elf.SHT_PROGBITS, _A, "", 0, 0),
    ".nvFatBinSegment": (elf.SHT_PROGBITS, _AW, "", 0, 0),
    ".data": (elf.SHT_PROGBITS, _AW, "", 0, 0),
    ".dynamic": (elf.SHT_DYNAMIC, _AW, ".dynstr", 16, 0),
    ".shstrtab": (elf.SHT_STRTAB, 0, "", 0, 0),
}
"""Type, flags, link, entry size and info, in the order of the file."""

_NAMES = b"\0" + b"".join(name.encode() + b"\0" for name in _SECTIONS)


def _relocations(slots: range, targets: range) -> bytes:
    table = array("Q", bytes(elf.RELA.size * len(slots)))
    table[0::3] = array("Q", slots)
    table[1::3] = array("Q", [_RELATIVE]) * len(slots)
    table[2::3] = array("Q", targets)
    return _little(table)


def _little(words: array[int]) -> bytes:
    if sys.byteorder == "big":
        words.byteswap()
    return words.tobytes()


def _entry_header(entry: fatbin.Entry, payload: int) -> bytes:
    """The header of ``entry`` with a payload of another size."""
    packed = bytearray(entry.pack()[: entry.header_size])
    struct.pack_into("<Q", packed, 8, payload)
    return bytes(packed)


@lru_cache(maxsize=8)
def _pool(word: str, size: int) -> tuple[bytes, ...]:
    """Different cubins of ``size`` bytes for ``word``: more than deflate's window holds."""
    uneven = bytes(value if value > 3 else 0 for value in range(256))
    sm = int(word.removeprefix("sm_"))
    noise = size - len(fatbin.cubin(sm, b""))
    source = random.Random(word)
    return tuple(
        fatbin.cubin(sm, source.randbytes(noise).translate(uneven))
        for _ in range(max(1, _POOL_BYTES // size))
    )


@lru_cache(maxsize=1)
def _host_chunk() -> bytes:
    source = random.Random(0)
    words = [source.randbytes(10) for _ in range(1 << 11)]
    return b"".join(source.choices(words, k=_HOST_CHUNK // 10 + 1))[:_HOST_CHUNK]
