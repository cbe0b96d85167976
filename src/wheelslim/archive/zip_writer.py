"""A writer of zip files that copies members as they lie and adds new ones.

What is added has its sizes and its CRC in the local header (no data descriptor), and ZIP64 fields
only where a value needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.file_copy import copy_range, write_at
from wheelslim.archive.zip_directory import DirectoryRecord
from wheelslim.archive.zip_format import (
    CENTRAL,
    CENTRAL_SIGNATURE,
    END,
    END64,
    END64_SIGNATURE,
    END_SIGNATURE,
    LOCAL,
    LOCAL_SIGNATURE,
    LOCATOR64,
    LOCATOR64_SIGNATURE,
    U16_MAX,
    U32_MAX,
    ZIP64_NEEDED,
    Flag,
    Method,
    without_zip64,
    zip64_extra,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor, Future

    from wheelslim.archive.deflate import Deflated
    from wheelslim.archive.zip_reader import ZipArchive, ZipEntry

_DEFLATE_NEEDED = 20
_UNIX_45 = 3 << 8 | ZIP64_NEEDED


@dataclass(frozen=True, slots=True)
class NewMember:
    """The facts of a member that is written anew, taken from ``like``.

    It keeps date, attributes, comment and extra fields of ``like``, and its method unless one is
    given. ``name`` is ASCII where it differs from that of ``like``.
    """

    like: ZipEntry
    name: str
    method: int

    @classmethod
    def instead_of(cls, entry: ZipEntry) -> NewMember:
        """Replace the content of ``entry``."""
        return cls(entry, entry.name, entry.method)

    @classmethod
    def beside(cls, entry: ZipEntry, name: str) -> NewMember:
        """Add a deflated member of the same date and attributes as ``entry``."""
        return cls(entry, name, Method.DEFLATED)

    @property
    def raw_name(self) -> bytes:
        """The name as it is written."""
        return self.like.raw_name if self.name == self.like.name else self.name.encode("ascii")


class ZipWriter:
    """Writes into the open, empty file ``fd``; copies are done by ``pool`` while others go on."""

    def __init__(
        self, fd: int, original: ZipArchive, pool: Executor, progress: Callable[[int], object]
    ) -> None:
        """Start after a copy of what stands before the first member of ``original``."""
        self._fd = fd
        self._original = original
        self._pool = pool
        self._progress = progress
        self._position = 0
        self._records: dict[str, tuple[DirectoryRecord | ZipEntry, int]] = {}
        self._run_start = 0
        self._run_end = original.prefix
        self._copies: list[Future[None]] = []

    def copy(self, entry: ZipEntry) -> None:
        """Take over a member as it lies; neighbours are copied in one go."""
        if entry.header_offset != self._run_end:
            self._copy_run()
            self._run_start = entry.header_offset
        self._records[entry.name] = (entry, self._position + entry.header_offset - self._run_start)
        self._run_end = entry.end_offset

    def _copy_run(self) -> None:
        size = self._run_end - self._run_start
        if size:
            part = self._original.source.part(self._run_start, size)
            self._copies.append(self._pool.submit(copy_range, part, self._fd, self._position, self._progress))
            self._position += size
        self._run_start = self._run_end

    def add(
        self, member: NewMember, size: int, fill: Callable[[Callable[[bytes], int]], Deflated]
    ) -> Deflated:
        """Write a member of ``size`` bytes whose data ``fill`` hands to the function it is given.

        That function returns the offset in the file at which it wrote. Returns what went through.

        Raises:
            OSError: the operating system refuses.
        """
        self._copy_run()
        self._run_start = self._run_end = -1
        like = member.like
        header_offset = self._position
        wide = size + (size >> 10) + LOCAL.size >= U32_MAX
        extra = without_zip64(like.local_extra)
        header_size = LOCAL.size + len(member.raw_name) + len(extra) + (20 if wide else 0)
        self._position += header_size

        def write(data: bytes) -> int:
            offset = self._position
            write_at(self._fd, data, offset)
            self._position += len(data)
            return offset

        done = fill(write)
        needed = _needed(like.needed, member.method, wide)
        flags = like.flags & Flag.UTF8 if member.name == like.name else 0
        sizes = (U32_MAX, U32_MAX) if wide else (done.compressed_size, done.size)
        if wide:
            extra = zip64_extra([done.size, done.compressed_size]) + extra
        write_at(
            self._fd,
            LOCAL.pack(
                LOCAL_SIGNATURE, needed, flags, member.method, like.time, like.date, done.crc, *sizes,
                len(member.raw_name), len(extra),
            ) + member.raw_name + extra,
            header_offset,
        )  # fmt: skip
        record = DirectoryRecord(
            member.name, member.raw_name, like.made_by, needed, flags, member.method, like.time,
            like.date, done.crc, done.compressed_size, done.size, like.internal_attributes,
            like.external_attributes, like.extra, like.comment, header_offset,
        )  # fmt: skip
        self._records[member.name] = (record, header_offset)
        return done

    def wait(self) -> None:
        """Wait until all copies are done, and raise what went wrong in one."""
        self._copy_run()
        self._run_start = self._run_end = -1
        while self._copies:
            self._copies.pop(0).result()

    def finish(self, order: Iterable[str], comment: bytes) -> int:
        """Write the central directory, with the members in ``order``; returns the file's size.

        Raises:
            OSError: the operating system refuses.
        """
        self.wait()
        records = [central_record(*self._records[name]) for name in order]
        directory = b"".join(records)
        tail = end_records(len(records), len(directory), self._position, comment)
        write_at(self._fd, directory + tail, self._position)
        return self._position + len(directory) + len(tail)


def _needed(before: int, method: int, wide: bool) -> int:
    if wide:
        return ZIP64_NEEDED
    if before >= ZIP64_NEEDED or method == Method.DEFLATED:
        return max(_DEFLATE_NEEDED, before if before < ZIP64_NEEDED else 0)
    return before


def central_record(header: DirectoryRecord | ZipEntry, offset: int) -> bytes:
    """Return the central directory's record of a member whose local header lies at ``offset``."""
    wide = []
    size, compressed_size, narrow_offset = header.size, header.compressed_size, offset
    if size >= U32_MAX:
        wide.append(size)
        size = U32_MAX
    if compressed_size >= U32_MAX:
        wide.append(compressed_size)
        compressed_size = U32_MAX
    if offset >= U32_MAX:
        wide.append(offset)
        narrow_offset = U32_MAX
    extra = without_zip64(header.extra) if header.extra else b""
    if wide:
        extra = zip64_extra(wide) + extra
    return (
        CENTRAL.pack(
            CENTRAL_SIGNATURE, header.made_by, max(header.needed, ZIP64_NEEDED) if wide else header.needed,
            header.flags, header.method, header.time, header.date, header.crc, compressed_size, size,
            len(header.raw_name), len(extra), len(header.comment), 0, header.internal_attributes,
            header.external_attributes, narrow_offset,
        )
        + header.raw_name + extra + header.comment
    )  # fmt: skip


def end_records(count: int, size: int, offset: int, comment: bytes) -> bytes:
    """Return what follows a central directory of ``count`` records and ``size`` bytes at ``offset``."""
    wide = b""
    if count >= U16_MAX or size >= U32_MAX or offset >= U32_MAX:
        wide = END64.pack(
            END64_SIGNATURE, END64.size - 12, _UNIX_45, ZIP64_NEEDED, 0, 0, count, count, size, offset
        ) + LOCATOR64.pack(LOCATOR64_SIGNATURE, 0, offset + size, 1)
        count, size, offset = min(count, U16_MAX), min(size, U32_MAX), min(offset, U32_MAX)
    return wide + END.pack(END_SIGNATURE, 0, 0, count, count, size, offset, len(comment)) + comment
