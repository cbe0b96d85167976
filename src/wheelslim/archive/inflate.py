"""Raw inflate in bounded steps, checked against the size and the CRC that the member promises.

isal inflates at 1.2 GB/s per core, zlib at 1.0 (libtorch_cpu.so, isal 1.9.1, CPython 3.11); isal is
used where it can be imported.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING, Protocol

from wheelslim.archive.zip_format import Method
from wheelslim.archive.zip_reader import Window
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wheelslim.archive.zip_reader import ZipArchive, ZipEntry

_READ = 1 << 17
"""Compressed bytes per step."""

_STEP = 1 << 18
_HEAD_INPUT = 1 << 10
_PACK_AGAIN = "Download it again, or pack it again: it is damaged"


class Inflater(Protocol):
    """A raw inflater that never yields more than asked for in one call."""

    @property
    def eof(self) -> bool:
        """Whether the end of the deflate stream was seen."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether it can go on only with more compressed bytes."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the deflate stream."""
        ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Take ``data`` (empty to go on) and return at most ``max_length`` bytes."""
        ...


class ZlibInflater:
    """The inflater of the standard library, where isal is missing."""

    def __init__(self) -> None:
        """Start a raw deflate stream."""
        self._object = zlib.decompressobj(-zlib.MAX_WBITS)
        self._full = False

    @property
    def eof(self) -> bool:
        """Whether the end of the deflate stream was seen."""
        return self._object.eof

    @property
    def needs_input(self) -> bool:
        """Whether it can go on only with more compressed bytes."""
        return not self.eof and not self._full and not self._object.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the deflate stream."""
        return self._object.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Take ``data`` (empty to go on) and return at most ``max_length`` bytes."""
        out = self._object.decompress(self._object.unconsumed_tail + data, max_length)
        self._full = len(out) == max_length
        return out


@cache
def _inflater() -> tuple[Callable[[], Inflater], type[Exception]]:
    # Imported here: optional, and not needed for every command.
    try:
        from isal import igzip_lib
    except ImportError:
        return ZlibInflater, zlib.error
    error: type[Exception] = igzip_lib.error  # type: ignore[assignment]  # its stub says instance
    return lambda: igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE), error


@cache
def crc32() -> Callable[[bytes, int], int]:
    """Return the fastest CRC-32 at hand."""
    try:
        from zlib_ng import zlib_ng
    except ImportError:
        return zlib.crc32
    return zlib_ng.crc32


def inflate(compressed: Iterable[bytes], size: int, place: Place) -> Iterator[bytes]:
    """Yield the ``size`` bytes that ``compressed`` inflates to, in steps of at most 256 KiB.

    Raises:
        ArchiveError: corrupt data, another size than promised, or bytes after the end.
    """
    make, error_type = _inflater()
    inflater = make()
    left = size
    try:
        for data in compressed:
            if inflater.eof:
                raise _leftover(place)
            block = inflater.decompress(data, _STEP)
            while True:
                left -= len(block)
                if left < 0:
                    raise _wrong_size(place, size, f"more than {size} bytes")
                if block:
                    yield block
                if inflater.eof or inflater.needs_input:
                    break
                block = inflater.decompress(b"", _STEP)
                if not block and not inflater.eof:
                    break
    except error_type as error:
        raise ArchiveError(
            "the compressed data are corrupt", place=place, found=str(error), hint=_PACK_AGAIN
        ) from error
    if left:
        raise _wrong_size(place, size, f"{size - left} bytes")
    if not inflater.eof:
        raise ArchiveError("the compressed data are cut off", place=place, hint=_PACK_AGAIN)
    if inflater.unused_data:
        raise _leftover(place)


def _leftover(place: Place) -> ArchiveError:
    return ArchiveError("bytes follow the end of the compressed data", place=place, hint=_PACK_AGAIN)


def _wrong_size(place: Place, size: int, found: str) -> ArchiveError:
    return ArchiveError(
        "a member inflates to another size than its header says",
        place=place,
        expected=f"{size} bytes",
        found=found,
        hint=_PACK_AGAIN,
    )


def member_blocks(archive: ZipArchive, entry: ZipEntry) -> Iterator[bytes]:
    """Yield a member's content in blocks and check its size and CRC at the end.

    Raises:
        ArchiveError: corrupt data, or another size or CRC than promised.
    """
    place = Place(member=entry.name)
    compressed = archive.compressed(entry)
    update = crc32()
    crc = 0
    deflated = entry.method == Method.DEFLATED
    blocks = inflate(compressed.blocks(block=_READ), entry.size, place) if deflated else compressed.blocks()
    for block in blocks:
        crc = update(block, crc)
        yield block
    if crc != entry.crc:
        raise wrong_crc(entry, crc)


def wrong_crc(entry: ZipEntry, found: int) -> ArchiveError:
    """Describe a member whose content has the CRC ``found`` instead of its own."""
    return ArchiveError(
        "a member's content does not have its CRC",
        place=Place(member=entry.name),
        expected=f"{entry.crc:#010x}",
        found=f"{found:#010x}",
        hint=_PACK_AGAIN,
    )


def head_of(data: bytes, entry: ZipEntry, size: int) -> bytes | None:
    """Return the member's first ``size`` bytes, given the first 1 KiB or all of its ``data``.

    None where that does not suffice; b"" where it does not inflate, which is found out for certain
    only when the member is read.
    """
    if entry.method != Method.DEFLATED:
        return data[:size]
    try:
        head = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size)
    except zlib.error:
        return b""
    return head if len(head) >= min(size, entry.size) else None


def heads(archive: ZipArchive, entries: list[ZipEntry], size: int) -> Iterator[bytes]:
    """Yield the first ``size`` bytes of each of ``entries``, best in the order of the file.

    b"" stands for those that do not inflate.
    """
    window = Window(archive.source)
    for entry in entries:
        head = head_of(window.read(entry.data_offset, min(_HEAD_INPUT, entry.compressed_size)), entry, size)
        if head is None:
            head = _inflated_head(archive, entry, size)
        yield head[:size]


def _inflated_head(archive: ZipArchive, entry: ZipEntry, size: int) -> bytes:
    head = b""
    try:
        for block in inflate(
            archive.compressed(entry).blocks(block=_READ), entry.size, Place(member=entry.name)
        ):
            head += block
            if len(head) >= size:
                break
    except ArchiveError:
        return b""
    return head
