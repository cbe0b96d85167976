"""A strict reader of zip files: what two tools could read differently is refused.

Both the central directory and every local header are read when the archive is opened, and have to
agree. Nothing is inflated then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from wheelslim.archive.allowance import Allowance
from wheelslim.archive.zip_directory import DirectoryRecord, read_directory
from wheelslim.archive.zip_end import find_directory
from wheelslim.archive.zip_format import (
    DESCRIPTOR_SIGNATURE,
    LOCAL,
    LOCAL_SIGNATURE,
    U32_MAX,
    ZIP64_EXTRA,
    Flag,
    extra_fields,
)
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from wheelslim.source import Source

_DEFLATE_LIMIT = 1032
"""Bytes that one byte of deflate can yield at most (zlib, "Maximum Compression Factor")."""

_FLAGS_THAT_AGREE = Flag.ENCRYPTED | Flag.DESCRIPTOR | Flag.UTF8
_COMPARED = ("name", "flags", "compression method", "CRC", "compressed size", "size")
_USUAL_EXTRA = 32
_WINDOW = 1 << 16


class ZipEntry(NamedTuple):
    """One member: what both headers say, and where it lies.

    Its bytes in the file are the local header at ``header_offset``, the data at ``data_offset``
    (``compressed_size`` bytes), and a data descriptor, if any, up to ``end_offset``.
    """

    name: str
    raw_name: bytes
    made_by: int
    needed: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    compressed_size: int
    size: int
    internal_attributes: int
    external_attributes: int
    extra: bytes
    comment: bytes
    header_offset: int
    local_extra: bytes
    data_offset: int
    end_offset: int

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory, by its name."""
        return self.name[-1] == "/"

    @property
    def unix_mode(self) -> int | None:
        """The ``st_mode`` of the file, or None where the archive was not made on Unix."""
        mode = self.external_attributes >> 16
        return mode if mode and self.made_by >> 8 in (3, 19) else None


@dataclass(frozen=True, slots=True)
class ZipArchive:
    """A zip file read whole but for its data; ``entries`` are in the directory's order.

    ``prefix`` bytes stand before the first member.
    """

    source: Source
    entries: tuple[ZipEntry, ...]
    comment: bytes
    prefix: int

    def compressed(self, entry: ZipEntry) -> Source:
        """Return the member's bytes as they lie in the file."""
        return self.source.part(entry.data_offset, entry.compressed_size)


class Window:
    """Small reads at rising offsets, served from one block of the file."""

    def __init__(self, source: Source, size: int = _WINDOW) -> None:
        """Read ``source`` in blocks of ``size`` bytes."""
        self._source = source
        self._size = size
        self._start = 0
        self._block = b""

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at ``offset``; fewer only at the end of the file."""
        start = offset - self._start
        if start < 0 or start + size > len(self._block):
            left = self._source.size - offset
            if left <= 0:
                return b""
            self._block = self._source.read(offset, min(max(size, self._size), left))
            self._start, start = offset, 0
        return self._block[start : start + size]


def read_zip(source: Source, max_ratio: float | None = None) -> ZipArchive:
    """Read all headers of the zip file that ``source`` covers.

    Raises:
        ArchiveError: it is no zip file, cut off, encrypted, of an unsupported method, its headers
            disagree, members overlap, a name is unsafe or repeated, or it unpacks to more than
            ``max_ratio`` times its size (see ``Allowance``).
    """
    end = find_directory(source)
    records = read_directory(source, end)
    _check_ratio(records, Allowance(source.size, max_ratio))
    window = Window(source)
    entries: dict[int, ZipEntry] = {}
    limit = 0
    order = sorted(range(len(records)), key=lambda index: records[index].header_offset)
    for index in order:
        record = records[index]
        if record.header_offset < limit:
            raise ArchiveError(
                "two members overlap",
                place=Place(member=record.name, offset=record.header_offset),
                expected=f"a start at or after {limit:#x}",
                hint="This is how zip bombs are made: do not unpack it",
            )
        entry = _read_local(window, record)
        limit = entry.end_offset
        if limit > end.start:
            raise ArchiveError(
                "a member reaches into the central directory",
                place=Place(member=record.name, offset=record.header_offset),
                expected=f"an end before {end.start:#x}",
                found=f"{limit:#x}",
            )
        entries[index] = entry
    first = records[order[0]].header_offset if order else end.start
    return ZipArchive(
        source=source,
        entries=tuple(entries[index] for index in range(len(records))),
        comment=end.comment,
        prefix=first,
    )


def _check_ratio(records: list[DirectoryRecord], allowance: Allowance) -> None:
    total = 0
    for record in records:
        total += record.size
        if record.size > record.compressed_size * _DEFLATE_LIMIT + _DEFLATE_LIMIT:
            raise ArchiveError(
                "a member claims more bytes than deflate could hold",
                place=Place(member=record.name),
                expected=f"at most {record.compressed_size * _DEFLATE_LIMIT} bytes",
                found=f"{record.size} bytes",
            )
    allowance.take(total)


def _read_local(window: Window, record: DirectoryRecord) -> ZipEntry:
    start = record.header_offset
    fixed = window.read(start, LOCAL.size + len(record.raw_name) + _USUAL_EXTRA)
    if len(fixed) < LOCAL.size or fixed[:4] != LOCAL_SIGNATURE:
        raise ArchiveError(
            "there is no local header where the central directory says",
            place=Place(member=record.name, offset=start),
            expected="a header (PK 3 4)",
            found=fixed[:4].hex(" ") or "the end of the file",
        )
    _, _, flags, method, _, _, crc, compressed, size, name_size, extra_size = LOCAL.unpack_from(fixed)
    data_offset = start + LOCAL.size + name_size + extra_size
    if data_offset - start > len(fixed):
        fixed = window.read(start, data_offset - start)
    raw_name = fixed[LOCAL.size : LOCAL.size + name_size]
    local_extra = fixed[LOCAL.size + name_size : data_offset - start]
    if U32_MAX in (compressed, size):
        compressed, size = _widen_local(record, local_extra, compressed, size)
    deferred = flags & Flag.DESCRIPTOR
    if deferred:  # What the local header leaves open follows the data.
        crc, compressed, size = crc or record.crc, compressed or record.compressed_size, size or record.size
    local = (raw_name, flags & _FLAGS_THAT_AGREE, method, crc, compressed, size)
    central = (
        record.raw_name, record.flags & _FLAGS_THAT_AGREE, record.method,
        record.crc, record.compressed_size, record.size,
    )  # fmt: skip
    if local != central:
        raise _disagreement(record, central, local)
    end = data_offset + record.compressed_size
    if deferred:
        end += _descriptor_size(window, record, end)
    return ZipEntry(*record, local_extra, data_offset, end)


def _widen_local(record: DirectoryRecord, extra: bytes, compressed: int, size: int) -> tuple[int, int]:
    body = next((content for number, content, _ in extra_fields(extra) if number == ZIP64_EXTRA), b"")
    # The local field holds both sizes, the uncompressed one first (APPNOTE 4.5.3).
    if len(body) < 16:
        raise ArchiveError(
            "the local header's ZIP64 extra field lacks the sizes",
            place=Place(member=record.name, offset=record.header_offset),
        )
    return (
        int.from_bytes(body[8:16], "little") if compressed == U32_MAX else compressed,
        int.from_bytes(body[:8], "little") if size == U32_MAX else size,
    )


def _disagreement(
    record: DirectoryRecord, central: tuple[object, ...], local: tuple[object, ...]
) -> ArchiveError:
    what, expected, found = next(
        (what, ours, theirs)
        for what, ours, theirs in zip(_COMPARED, central, local, strict=True)
        if ours != theirs
    )
    return ArchiveError(
        f"the local header and the central directory disagree on the {what}",
        place=Place(member=record.name, offset=record.header_offset),
        expected=repr(expected),
        found=repr(found),
        hint="Tools differ in which one they believe: pack the archive again",
    )


def _descriptor_size(window: Window, record: DirectoryRecord, offset: int) -> int:
    """Return the bytes of the data descriptor: with or without signature, of 4- or 8-byte sizes."""
    found = window.read(offset, 24)
    crc = record.crc.to_bytes(4, "little")
    for width in (4, 8):
        if max(record.compressed_size, record.size) >> (8 * width):
            continue
        body = crc + record.compressed_size.to_bytes(width, "little") + record.size.to_bytes(width, "little")
        for expected in (DESCRIPTOR_SIGNATURE + body, body):
            if found.startswith(expected):
                return len(expected)
    raise ArchiveError(
        "the data descriptor and the central directory disagree",
        place=Place(member=record.name, offset=offset),
        expected=f"CRC {record.crc:#010x} and the sizes",
        found=found.hex(" "),
    )
