"""Entries as zstd: what ``--recompress zstd`` makes of those stored plain or as LZ4.

Drivers before 550.54.14 (CUDA 12.4) cannot read zstd entries (published in the documentation of RAPIDS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.fatbin.layout import ENTRY, SECTION_ALIGNMENT, EntryFlag, EntryKind
from wheelslim.fatbin.model import Compression
from wheelslim.fatbin.payload import ZSTD_LEVEL, compress, read_payload

if TYPE_CHECKING:
    from wheelslim.fatbin.model import Entry
    from wheelslim.source import Source

RECOMPRESSIBLE = frozenset((EntryKind.PTX, EntryKind.CUBIN, EntryKind.CUBIN_VARIANT))
"""Kinds that nvcc itself stores as zstd (measured, nvcc 13.0)."""

_LARGEST = 1 << 28
"""Bytes of the largest plain payload that is held; a larger one stays as it is."""

_LZ4 = int(EntryFlag.LZ4)
_ZSTD = int(EntryFlag.ZSTD)
"""Plain numbers: the inverse of a flag of an enum has no bits but those that the enum names."""

_SIZES = slice(2, 5)
_FLAGS = 11
_PLAIN = 13


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry as bytes: the header, and the payload with its padding."""

    header: bytes
    payload: bytes

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self.header) + len(self.payload)


def recompressed(source: Source, entry: Entry, level: int = ZSTD_LEVEL) -> NewEntry | None:
    """Return ``entry`` stored as zstd, or None where that is not smaller, or not possible.

    Offsets of ``entry`` count from the start of ``source``. At the default level the result is byte
    for byte what nvcc writes with ``--compress-mode=size`` (measured, CUDA 13.0 and 13.5).

    Raises:
        FatbinFormatError: the payload does not decompress.
    """
    if entry.kind not in RECOMPRESSIBLE or entry.compression is Compression.ZSTD:
        return None
    if entry.flags & EntryFlag.OBFUSCATED or max(entry.plain_size, entry.padded_size) > _LARGEST:
        return None
    plain = read_payload(source, entry)
    if entry.kind == EntryKind.PTX and entry.compression is Compression.NONE:
        plain = plain.rstrip(b"\0") + b"\0"  # Padding is not told from the text's own end, one NUL.
    new = zstd_entry(source.read(entry.offset, entry.header_size), plain, level)
    return new if new.size < entry.size else None


def zstd_entry(header: bytes, plain: bytes, level: int = ZSTD_LEVEL) -> NewEntry:
    """Store ``plain`` as zstd under ``header``, whose sizes and compression flags are set anew.

    These are all the bytes in which fatbinary's own zstd entries differ from plain ones (measured).
    """
    stored = compress(plain, level)
    padded = -(-len(stored) // SECTION_ALIGNMENT) * SECTION_ALIGNMENT
    fields = list(ENTRY.unpack_from(header))
    fields[_SIZES] = len(header), padded, len(stored)
    fields[_FLAGS] = fields[_FLAGS] & ~_LZ4 | _ZSTD
    fields[_PLAIN] = len(plain)
    return NewEntry(ENTRY.pack(*fields) + header[ENTRY.size :], stored.ljust(padded, b"\0"))
