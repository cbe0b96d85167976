"""Bytes to containers: headers only, payloads are never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from wheelslim.errors import FatbinFormatError, Place
from wheelslim.fatbin.layout import (
    CONCATENATED_HEAD,
    CONCATENATED_SUB,
    CONTAINER_HEADER,
    CONTAINER_MAGIC,
    CONTAINER_MAGIC_BYTES,
    CONTAINER_VERSION,
    ENTRY,
    ENTRY_HEADER_MIN,
    ENTRY_VERSION,
    EXTENSION,
    SECTION_ALIGNMENT,
    EntryKind,
)
from wheelslim.fatbin.model import Container, Entry, SubEntry, Tiling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.source import Source

_WINDOW = 1 << 12
_WINDOW_MAX = 1 << 18
_MAX_HEADER = 1 << 16
_MAX_SUBS = 4096
_MAX_ALIGNMENT = 4096
_MAX_ENTRIES = 1 << 20

Value = TypeVar("Value")


class HeaderWindow:
    """Small reads served from one window of 4 KiB, so that close headers cost one system call.

    It grows while each window follows close on the one before: small containers lie densely.
    ``reads`` counts what was asked for.
    """

    def __init__(self, source: Source) -> None:
        """Start with an empty window over ``source``."""
        self._source = source
        self._start = 0
        self._data = b""
        self._size = _WINDOW
        self._known: dict[object, object] = {}
        self.reads = 0

    def one(self, value: Value) -> Value:
        """Return an equal value that was seen before, so that 100,000 entries hold few objects."""
        return self._known.setdefault(value, value)  # type: ignore[return-value]

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes at ``offset``, fewer where the source ends."""
        self.reads += 1
        begin = offset - self._start
        if begin < 0 or begin + size > len(self._data):
            follows = 0 <= begin < 2 * len(self._data)
            self._size = min(2 * self._size, _WINDOW_MAX) if follows else _WINDOW
            want = min(max(self._size, size), max(0, self._source.size - offset))
            self._data = self._source.read(offset, want) if want else b""
            self._start, begin = offset, 0
        return self._data[begin : begin + size]


def read_container(source: Source, offset: int, window: HeaderWindow | None = None) -> Container:
    """Read the container that starts at ``offset`` (bytes from the start of ``source``).

    Format: fatBinaryHeader, then entries stepped by header size + padded payload size
    (docs/fatbin-format.md).

    Raises:
        FatbinFormatError: wrong magic or version, or a size that passes its surroundings.
    """
    window = window or HeaderWindow(source)
    head = window.read(offset, CONTAINER_HEADER.size)
    if len(head) < CONTAINER_HEADER.size:
        raise _fault("the container header is cut off", offset, f"{CONTAINER_HEADER.size} bytes", len(head))
    magic, version, header_size, body = CONTAINER_HEADER.unpack(head)
    if magic != CONTAINER_MAGIC:
        raise _fault("no fatbin container", offset, f"magic {CONTAINER_MAGIC:#010x}", f"{magic:#010x}")
    if version != CONTAINER_VERSION or header_size != CONTAINER_HEADER.size:
        raise _fault(
            "unknown container version",
            offset,
            f"version {CONTAINER_VERSION}, header of {CONTAINER_HEADER.size} bytes",
            f"version {version}, header of {header_size} bytes",
        )
    end = offset + header_size + body
    if end > source.size:
        raise _fault(
            "the container passes the end of its surroundings",
            offset,
            f"at most {source.size - offset} bytes",
            header_size + body,
        )
    entries = tuple(_read_entries(window, offset + header_size, end))
    return Container(offset, header_size + body, header_size, entries)


def _read_entries(window: HeaderWindow, position: int, end: int) -> Iterator[Entry]:
    count = 0
    while position < end:
        entry = _read_entry(window, position, end)
        yield entry
        position += entry.header_size + entry.padded_size
        count += 1
        if count > _MAX_ENTRIES:
            raise _fault("too many entries in one container", position, f"at most {_MAX_ENTRIES}", count)


def _read_entry(window: HeaderWindow, position: int, end: int) -> Entry:
    head = window.read(position, ENTRY_HEADER_MIN) if position + ENTRY_HEADER_MIN <= end else b""
    if len(head) < ENTRY_HEADER_MIN:
        raise _fault(
            "the entry header is cut off", position, f"{ENTRY_HEADER_MIN} bytes", f"{end - position} bytes"
        )
    (kind, version, header_size, padded, compressed, _extension, minor, major, sm, _, _, flags, _, plain) = (
        ENTRY.unpack(head)
    )
    if version != ENTRY_VERSION:
        raise _fault("unknown entry version", position, f"{ENTRY_VERSION:#06x}", f"{version:#06x}")
    if not ENTRY_HEADER_MIN <= header_size <= _MAX_HEADER or header_size % SECTION_ALIGNMENT:
        raise _fault("impossible entry header size", position, "a multiple of 8 from 64", header_size)
    if position + header_size + padded > end:
        raise _fault(
            "the entry passes the end of its container",
            position,
            f"at most {end - position} bytes",
            f"{header_size + padded} bytes",
        )
    if compressed > padded:
        raise _fault("the payload is larger than its room", position, f"at most {padded} bytes", compressed)
    subs = _read_subs(window, position, header_size) if kind == EntryKind.CONCATENATED else ()
    version_of_payload = window.one((major, minor))
    flags = window.one(flags)
    return Entry(position, kind, header_size, padded, compressed, version_of_payload, sm, flags, plain, subs)


def _read_subs(window: HeaderWindow, position: int, header_size: int) -> tuple[SubEntry, ...]:
    head = window.read(position + ENTRY_HEADER_MIN, CONCATENATED_HEAD.size)
    at = position + ENTRY_HEADER_MIN + CONCATENATED_HEAD.size
    count, table_size = CONCATENATED_HEAD.unpack(head) if len(head) == CONCATENATED_HEAD.size else (0, 0)
    end = position + ENTRY_HEADER_MIN + table_size
    if not 0 < count <= _MAX_SUBS or at >= end or end > position + header_size:
        raise _fault(
            "the sub-header table of a concatenated entry does not fit",
            position,
            f"1 to {_MAX_SUBS} sub-headers inside the header",
            f"{count} in {table_size} bytes",
        )
    subs = []
    for _ in range(count):
        raw = window.read(at, CONCATENATED_SUB.size) if at + CONCATENATED_SUB.size <= end else b""
        if not raw:
            break
        fields = CONCATENATED_SUB.unpack(raw)
        if (kind := fields[0]) != EntryKind.CUBIN:
            raise _fault("a sub-header that is no cubin's", at, f"kind {EntryKind.CUBIN:#x}", f"{kind:#x}")
        size = _sub_header_size(window, at, end, fields)
        subs.append(SubEntry(fields[2], fields[3], sm=fields[8], flags=fields[11], header_size=size))
        at += size
    if len(subs) != count or at != end:
        raise _fault(
            "the sub-headers of a concatenated entry do not fill their table",
            position,
            f"{count} sub-headers up to offset {end:#x}",
            f"{len(subs)} up to {at:#x}",
        )
    return tuple(subs)


def _sub_header_size(window: HeaderWindow, at: int, end: int, fields: tuple[int, ...]) -> int:
    """Find where a sub-header ends: it has no size field, but names its identifier and extension block."""
    extension, identifier, length = fields[5], fields[9], fields[10]
    size = CONCATENATED_SUB.size
    if identifier and length:
        size = max(size, identifier + length)
    if extension and at + extension + EXTENSION.size <= end:
        size = max(size, sum(EXTENSION.unpack(window.read(at + extension, EXTENSION.size))) + 1)
    return -(-size // SECTION_ALIGNMENT) * SECTION_ALIGNMENT


def read_tiling(source: Source, address: int) -> Tiling:
    """Read a whole section of containers; every byte is header, payload or zero padding.

    ``address`` is the virtual address of the section's first byte; it decides the alignment.

    Raises:
        FatbinFormatError: a byte that is neither in a container nor zero, or a container that does
            not parse.
    """
    window = HeaderWindow(source)
    containers: list[Container] = []
    position = 0
    low_bits = _MAX_ALIGNMENT
    while (position := _next_start(source, window, position)) < source.size:
        if (address + position) % SECTION_ALIGNMENT:
            raise _fault("a container that is not aligned", position, "a multiple of 8", address + position)
        container = read_container(source, position, window)
        containers.append(container)
        low_bits |= address + position
        position = container.end
    alignment = max(SECTION_ALIGNMENT, low_bits & -low_bits)
    return Tiling(tuple(containers), source.size, alignment)


def _next_start(source: Source, window: HeaderWindow, position: int) -> int:
    """Skip zero padding: where the next container's magic stands, or the end of the source."""
    while position < source.size:
        block = window.read(position, min(_WINDOW, source.size - position))
        rest = block.lstrip(b"\0")
        position += len(block) - len(rest)
        if rest:
            break
    if position < source.size and (found := window.read(position, 4)) != CONTAINER_MAGIC_BYTES:
        raise _fault(
            "a byte that belongs to no container", position, "zero padding or a container", found.hex(" ")
        )
    return position


def _fault(what: str, offset: int, expected: str, found: object) -> FatbinFormatError:
    return FatbinFormatError(what, place=Place(offset=offset), expected=expected, found=str(found))
