"""The end of a zip file: where its central directory lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.zip_format import (
    END,
    END64,
    END64_SIGNATURE,
    END_SIGNATURE,
    LOCAL_SIGNATURE,
    LOCATOR64,
    LOCATOR64_SIGNATURE,
    MAX_END,
    U16_MAX,
    U32_MAX,
)
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from wheelslim.source import Source

_DOWNLOAD_AGAIN = "Download it again: it is not whole"


@dataclass(frozen=True, slots=True)
class DirectoryEnd:
    """Where the central directory lies: offsets in the file, sizes in bytes.

    ``prefix`` is what has to be added to the offsets that the archive itself states.
    """

    start: int
    size: int
    count: int
    prefix: int
    comment: bytes


def find_directory(source: Source) -> DirectoryEnd:
    """Find the central directory from the end records.

    Raises:
        ArchiveError: there is none, it is cut off, of several disks, or the records disagree.
    """
    tail_start = max(0, source.size - MAX_END - LOCATOR64.size)
    tail = source.read(tail_start, source.size - tail_start)
    at = _end_position(tail, source)
    _, disk, first_disk, here, count, size, offset, _ = END.unpack_from(tail, at)
    comment = tail[at + END.size :]
    end = tail_start + at
    if (disk or first_disk or here != count) and U16_MAX not in (disk, first_disk, here, count):
        raise ArchiveError("an archive of several disks is not supported", place=Place(offset=end))
    directory_end = end
    wide = _find_end64(source, tail, at, end)
    if wide is not None:
        directory_end, count64, size64, offset64 = wide
        for narrow, value, sentinel in (
            (count, count64, U16_MAX),
            (size, size64, U32_MAX),
            (offset, offset64, U32_MAX),
        ):
            if narrow not in (sentinel, value):
                raise ArchiveError(
                    "the ZIP64 end record disagrees with the end record",
                    place=Place(offset=directory_end),
                    expected=str(narrow),
                    found=str(value),
                )
        count, size, offset = count64, size64, offset64
    prefix = directory_end - size - offset
    if prefix < 0:
        raise ArchiveError(
            "the central directory lies outside the file",
            place=Place(offset=end),
            expected=f"{offset + size} bytes before the end record",
            found=f"{directory_end} bytes",
            hint=_DOWNLOAD_AGAIN,
        )
    return DirectoryEnd(directory_end - size, size, count, prefix, comment)


def _end_position(tail: bytes, source: Source) -> int:
    last = at = tail.rfind(END_SIGNATURE)
    while at >= 0:
        if at + END.size <= len(tail):
            comment = int.from_bytes(tail[at + END.size - 2 : at + END.size], "little")
            if at + END.size + comment == len(tail):
                break
        at = tail.rfind(END_SIGNATURE, 0, at)
    if at >= 0 and at != last:
        raise ArchiveError(
            "the comment of the archive looks like end records",
            place=Place(offset=source.size - len(tail) + last),
            hint="Tools differ in which one they take: pack the archive again",
        )
    if at >= 0:
        return at
    if source.size >= 4 and source.read(0, 4) == LOCAL_SIGNATURE:
        raise ArchiveError(
            "the zip file is cut off: it has no end record",
            place=Place(offset=source.size),
            expected="an end record (PK 5 6) at the very end",
            hint=_DOWNLOAD_AGAIN,
        )
    raise ArchiveError(
        "this is no zip file",
        expected="an end record (PK 5 6) at the very end",
        found=f"{source.size} bytes without one",
    )


def _find_end64(source: Source, tail: bytes, at: int, end: int) -> tuple[int, int, int, int] | None:
    if at < LOCATOR64.size or tail[at - LOCATOR64.size : at - LOCATOR64.size + 4] != LOCATOR64_SIGNATURE:
        return None
    locator = end - LOCATOR64.size
    _, disk, stated, disks = LOCATOR64.unpack_from(tail, at - LOCATOR64.size)
    if disk or disks > 1:
        raise ArchiveError("an archive of several disks is not supported", place=Place(offset=locator))
    for start in (stated, locator - END64.size):
        if 0 <= start <= locator - END64.size:
            record = END64.unpack(source.read(start, END64.size))
            if record[0] == END64_SIGNATURE and start + 12 + record[1] == locator:
                _, _, _, _, disk, first_disk, here, count, size, offset = record
                if disk or first_disk or here != count:
                    raise ArchiveError(
                        "an archive of several disks is not supported", place=Place(offset=start)
                    )
                return start, count, size, offset
    raise ArchiveError(
        "the ZIP64 end record is missing",
        place=Place(offset=locator),
        expected=f"a record (PK 6 6) at {stated:#x} that ends at its locator",
        hint=_DOWNLOAD_AGAIN,
    )
