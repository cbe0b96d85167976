"""Concatenated entries (kind 0x100): many cubins in one zstd stream, taken apart.

Only fatbinary of CUDA 13.5 and later writes them (``--concat``); no published wheel that was looked at
holds one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.errors import FatbinFormatError, Place
from wheelslim.fatbin.layout import CONCATENATED_HEAD, ENTRY_HEADER_MIN, EntryKind
from wheelslim.fatbin.model import Entry
from wheelslim.fatbin.payload import ZSTD_LEVEL, read_payload
from wheelslim.fatbin.recompress import zstd_entry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from wheelslim.fatbin.recompress import NewEntry
    from wheelslim.source import Source


def apart(entry: Entry) -> tuple[Entry, ...]:
    """Describe the cubins of a concatenated entry as entries of their own, for planning.

    They have the place of the whole and the sizes of nothing.
    """
    return tuple(
        Entry(
            entry.offset, EntryKind.CUBIN, sub.header_size, 0, 0, entry.version, sub.sm, sub.flags, sub.size
        )
        for sub in entry.subs
    )


def split(
    source: Source, entry: Entry, wanted: Collection[int], level: int = ZSTD_LEVEL
) -> Iterator[NewEntry]:
    """Yield the ``wanted`` cubins (indexes into ``entry.subs``) as ordinary zstd entries, in their order.

    Raises:
        FatbinFormatError: the stream does not decompress, or a cubin passes its end.
    """
    stream = read_payload(source, entry)
    at = entry.offset + ENTRY_HEADER_MIN + CONCATENATED_HEAD.size
    for index, sub in enumerate(entry.subs):
        if sub.offset + sub.size > len(stream):
            raise FatbinFormatError(
                "a cubin passes the end of its concatenated stream",
                place=Place(offset=at),
                expected=f"at most {len(stream)} bytes",
                found=f"{sub.size} bytes at {sub.offset}",
            )
        if index in wanted:
            header = source.read(at, sub.header_size)
            yield zstd_entry(header, stream[sub.offset : sub.offset + sub.size], level)
        at += sub.header_size
