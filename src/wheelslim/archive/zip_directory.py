"""The central directory of a zip file, parsed whole."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, NamedTuple

from wheelslim.archive.zip_format import (
    CENTRAL,
    CENTRAL_SIGNATURE,
    LOCAL_SIGNATURE,
    U16_MAX,
    U32_MAX,
    ZIP64_EXTRA,
    Flag,
    Method,
    extra_fields,
)
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from wheelslim.archive.zip_end import DirectoryEnd
    from wheelslim.source import Source

_UNSAFE_NAME = re.compile(r"[\\\x00-\x1f\x7f]|^/|^[A-Za-z]:|//|(?:^|/)\.\.?(?:/|$)")
_SUSPICIOUS = re.compile(r"[\\:\x00-\x09\x0b-\x1f\x7f]|//|/\.|\n[/.]")
_UNICODE_PATH = 0x7075
_UNICODE_PATH_BYTES = b"up"
_REFUSED_FLAGS = {
    Flag.ENCRYPTED | Flag.STRONG_ENCRYPTION | Flag.MASKED_HEADERS: "the member is encrypted",
    Flag.PATCHED: "the member is compressed patched data",
}
_ANY_REFUSED = Flag.ENCRYPTED | Flag.STRONG_ENCRYPTION | Flag.MASKED_HEADERS | Flag.PATCHED


class DirectoryRecord(NamedTuple):
    """What the central directory says about one member.

    ``made_by`` to ``date`` are the fields as they stand; sizes are bytes, with ZIP64 resolved;
    ``header_offset`` counts from the start of the file, whatever bytes stand before the archive.
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


def read_directory(source: Source, end: DirectoryEnd) -> list[DirectoryRecord]:
    """Parse every record of the central directory.

    Raises:
        ArchiveError: a record does not parse, is encrypted, of an unsupported method, of an unsafe
            or repeated name, the records do not fill the directory, or another archive stands before it.
    """
    data = source.read(end.start, end.size)
    records = []
    position = 0
    for _ in range(end.count):
        record, position = _read_record(data, position, end)
        records.append(record)
    if position != end.size:
        raise ArchiveError(
            "the central directory holds other bytes after its last record",
            place=Place(offset=end.start + position),
            expected=f"{position} bytes",
            found=f"{end.size} bytes",
        )
    _check_names(records)
    _check_start(source, [record.header_offset for record in records] or [0], end)
    return records


def _read_record(data: bytes, position: int, end: DirectoryEnd) -> tuple[DirectoryRecord, int]:
    here = end.start + position
    names = position + CENTRAL.size
    if names > len(data) or data[position : position + 4] != CENTRAL_SIGNATURE:
        raise ArchiveError(
            "the central directory does not parse",
            place=Place(offset=here),
            expected="a record (PK 1 2)",
            found=data[position : position + 4].hex(" ") or "its end",
        )
    (
        _, made_by, needed, flags, method, time, date, crc, compressed_size, size,
        name_size, extra_size, comment_size, disk, internal, external, offset,
    ) = CENTRAL.unpack_from(data, position)  # fmt: skip
    extras = names + name_size
    comments = extras + extra_size
    following = comments + comment_size
    if following > len(data):
        raise ArchiveError("a record passes the end of the central directory", place=Place(offset=here))
    raw_name = data[names:extras]
    extra = data[extras:comments]
    name = decode_name(raw_name, flags, here)
    _check_unicode_path(extra, raw_name, name)
    if U32_MAX in (size, compressed_size, offset) or disk == U16_MAX:
        size, compressed_size, offset, disk = _widen(extra, (size, compressed_size, offset, disk), name)
    if disk:
        raise ArchiveError("an archive of several disks is not supported", place=Place(member=name))
    _check_supported(name, flags, method, compressed_size, size)
    record = DirectoryRecord(
        name, raw_name, made_by, needed, flags, method, time, date, crc, compressed_size, size,
        internal, external, extra, data[comments:following], offset + end.prefix,
    )  # fmt: skip
    return record, following


def decode_name(raw: bytes, flags: int, offset: int) -> str:
    """Decode a member's name: UTF-8 where the flag says so, else code page 437."""
    if raw.isascii():
        return raw.decode("ascii")
    if not flags & Flag.UTF8:
        return raw.decode("cp437")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArchiveError(
            "a member's name is not the UTF-8 that it claims to be",
            place=Place(offset=offset),
            found=repr(raw),
        ) from error


def _check_unicode_path(extra: bytes, raw_name: bytes, name: str) -> None:
    """Make sure that Info-ZIP's Unicode Path field (0x7075), where it counts, gives the member the same name.

    Raises:
        ArchiveError: it gives another one, which Python's zipfile takes from 3.12 on, and others do not.
    """
    if _UNICODE_PATH_BYTES not in extra:
        return
    for number, content, _ in extra_fields(extra):
        named_crc = int.from_bytes(content[1:5], "little")
        if number == _UNICODE_PATH and content[:1] == b"\x01" and named_crc == zlib.crc32(raw_name):
            other = content[5:].decode("utf-8", "backslashreplace")
            if other != name:
                raise ArchiveError(
                    "a member has another name in its Unicode Path field",
                    place=Place(member=name),
                    found=repr(other),
                    hint="Tools differ in which one they take: pack the archive again",
                )


def _widen(extra: bytes, values: tuple[int, int, int, int], name: str) -> tuple[int, int, int, int]:
    """Replace sentinels by what the ZIP64 extra field holds, in the order of the format."""
    body = next((content for number, content, _ in extra_fields(extra) if number == ZIP64_EXTRA), None)
    widened = list(values)
    at = 0
    for index, (value, sentinel, width) in enumerate(
        zip(values, (U32_MAX, U32_MAX, U32_MAX, U16_MAX), (8, 8, 8, 4), strict=True)
    ):
        if value != sentinel:
            continue
        if body is None or at + width > len(body):
            raise ArchiveError(
                "a size or offset is missing from the ZIP64 extra field", place=Place(member=name)
            )
        widened[index] = int.from_bytes(body[at : at + width], "little")
        at += width
    return widened[0], widened[1], widened[2], widened[3]


def _check_supported(name: str, flags: int, method: int, compressed_size: int, size: int) -> None:
    if flags & _ANY_REFUSED:
        what = next(text for bits, text in _REFUSED_FLAGS.items() if flags & bits)
        raise ArchiveError(what, place=Place(member=name), hint="Unpack it and pack it again without")
    if method not in (Method.STORED, Method.DEFLATED):
        raise ArchiveError(
            "the compression method is not supported",
            place=Place(member=name),
            expected="0 (stored) or 8 (deflate), the only ones that pip reads",
            found=str(method),
        )
    if method == Method.STORED and compressed_size != size:
        raise ArchiveError(
            "a stored member has two sizes",
            place=Place(member=name),
            expected=f"{size} bytes",
            found=f"{compressed_size} bytes",
        )


def _check_names(records: list[DirectoryRecord]) -> None:
    # A hint of trouble in all names together is rare; only then is each name matched.
    text = "\n" + "\n".join([record.name for record in records])
    suspicious = text.count("\n") != len(records) or _SUSPICIOUS.search(text) is not None
    seen: set[str] = set()
    folders: set[str] = set()
    for record in records:
        name = record.name
        if not name or (suspicious and _UNSAFE_NAME.search(name)):
            raise ArchiveError(
                "a member's name leads outside the archive or is no plain path",
                place=Place(member=repr(name)),
                expected="a relative path with '/' between its parts, without '.' and '..'",
                hint="Do not install this archive",
            )
        is_directory = name[-1] == "/"
        key = name[:-1] if is_directory else name
        if key in seen:
            raise ArchiveError(
                "two members have the same name",
                place=Place(member=name),
                hint="Tools differ in which one they take: pack the archive again",
            )
        seen.add(key)
        if is_directory and record.size:
            raise ArchiveError(
                "a directory has content", place=Place(member=name), found=f"{record.size} bytes"
            )
        if is_directory:
            folders.add(key)
    _check_parents(seen, folders)


def _check_start(source: Source, offsets: list[int], end: DirectoryEnd) -> None:
    """Refuse a header at the very start that is no member's; ``offsets`` are those of the members."""
    size, first = len(LOCAL_SIGNATURE), min(offsets)
    if first >= size and max(offsets) < end.start and source.read(0, size) == LOCAL_SIGNATURE:
        raise ArchiveError(
            "another archive, or a member that is not listed, stands before the archive",
            place=Place(offset=0),
            expected=f"the first member, or bytes of another kind before it at {first:#x}",
            hint="Who reads it from the front sees something else: do not install it",
        )


def _check_parents(names: set[str], folders: set[str]) -> None:
    """Refuse what lies behind a file or a symbolic link; ``folders`` are the directories among ``names``."""
    parents = {name.rpartition("/")[0] for name in names}
    known: set[str] = set()
    for parent in parents:
        place = parent
        while place and place not in known:
            known.add(place)
            if place in names and place not in folders:
                raise ArchiveError(
                    "a member lies behind another that is no directory",
                    place=Place(member=parent),
                    found=f"{place} is a file or a link",
                    hint="Do not install this archive",
                )
            place = place.rpartition("/")[0]
