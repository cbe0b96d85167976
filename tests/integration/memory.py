"""What a process sees of a library: the bytes at every virtual address."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from judges import readelf

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Memory:
    """The PT_LOADs of a file."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self.data = path.read_bytes()
        self.loads = readelf.read(path).loads

    def read(self, address: int, size: int) -> bytes:
        """Bytes at an address range; zeros behind a segment's file bytes, ``?`` where nothing is mapped."""
        result = bytearray(b"?" * size)
        for load in self.loads:
            low, high = max(address, load.address), min(address + size, load.address + load.memory_size)
            if low >= high:
                continue
            start = load.offset + low - load.address
            end = min(start + high - low, load.offset + load.file_size)
            result[low - address : high - address] = self.data[start : max(start, end)].ljust(
                high - low, b"\0"
            )
        return bytes(result)

    def header_ranges(self) -> list[tuple[int, int]]:
        """Addresses of ELF header, program headers and, where they are loaded, section headers."""
        phoff, shoff = struct.unpack_from("<QQ", self.data, 32)
        phnum, shentsize, shnum = struct.unpack_from("<HHH", self.data, 56)
        found = []
        for start, size in ((0, 64), (phoff, 56 * phnum), (shoff, shentsize * shnum)):
            for load in self.loads:
                if load.offset <= start < load.offset + load.file_size:
                    found.append((start - load.offset + load.address, size))
        return found


def check_same_memory(before: Path, after: Path, exempt: Iterable[tuple[int, int]] = ()) -> int:
    """Assert that every address of ``before`` holds the same byte in ``after``; returns bytes compared.

    Headers may differ; so may ``exempt`` ranges (address, size).
    """
    one, other = Memory(before), Memory(after)
    masked = [*one.header_ranges(), *other.header_ranges(), *exempt]
    compared = 0
    for load in one.loads:
        old, new = (bytearray(side.read(load.address, load.memory_size)) for side in (one, other))
        for start, size in masked:
            low = max(0, start - load.address)
            high = min(len(old), start + size - load.address)
            if low < high:
                old[low:high] = new[low:high] = bytes(high - low)
        if old != new:
            where = next(index for index, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
            raise AssertionError(f"{after.name} differs at address {load.address + where:#x}")
        compared += len(old)
    return compared
