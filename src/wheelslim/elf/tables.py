"""Tables of equal records, swept as arrays of 64-bit words: only hits become Python objects."""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.source import Source

BLOCK_RECORDS = 1 << 16


def words(data: bytes) -> array[int]:
    """Return little-endian 64-bit words as an array."""
    result = array("Q", data)
    if sys.byteorder == "big":  # pragma: no cover - no such machine at hand
        result.byteswap()
    return result


def blocks(source: Source, offset: int, size: int, record: int) -> Iterator[array[int]]:
    """Yield a table of ``record``-byte records, a multiple of 8, as words: some 65,536 records at a time.

    Raises:
        ArtifactError: the table passes the end of the source.
    """
    usable = size - size % record
    for start in range(0, usable, BLOCK_RECORDS * record):
        yield words(source.read(offset + start, min(BLOCK_RECORDS * record, usable - start)))
