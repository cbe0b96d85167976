"""A tar read, and written, from one end to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.archive.tar_header import (
    BLOCK_SIZE,
    EXTENSION_TYPES,
    GLOBAL_TYPE,
    TarHeader,
    block_type,
    extension_size,
    padded,
    parse_header,
    pax_records,
)
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wheelslim.archive.block_reader import BlockReader

RECORD_SIZE = 10240
"""A tar file is filled up to a multiple of this (POSIX: blocking factor 20)."""

_ZERO_BLOCK = bytes(BLOCK_SIZE)
_HARMLESS_GLOBALS = (b"comment",)


class TarReader:
    """Iterates over the members of a tar; their data can be read until the next step."""

    def __init__(self, stream: BlockReader) -> None:
        """Read the uncompressed tar ``stream``."""
        self._stream = stream
        self._left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[TarHeader]:
        """Yield every member in stored order, and read on to the very end of the stream.

        Raises:
            ArchiveError: the tar is truncated, does not parse, or has other bytes after its end.
        """
        while True:
            for _ in self.data():
                pass
            self._read(self._padding)
            self._padding = 0
            header = self._next_header()
            if header is None:
                self._read_end()
                return
            self._left = header.size
            self._padding = header.padded_size - header.size
            yield header

    def data(self) -> Iterator[memoryview]:
        """Yield what is left of the current member's data.

        Raises:
            ArchiveError: the tar ends before the member does.
        """
        for part in self._stream.parts(self._left):
            self._left -= len(part)
            yield part
        if self._left:
            raise self._truncated(self._left)

    def head(self, size: int) -> bytes:
        """Return the first ``size`` bytes of the current member, or all; ``data`` yields the others."""
        head = self._read(min(size, self._left))
        self._left -= len(head)
        return head

    def _next_header(self) -> TarHeader | None:
        group: list[bytes] = []
        globals_: list[bytes] = []
        while True:
            start = self._stream.position
            block = self._read(BLOCK_SIZE)
            if block == _ZERO_BLOCK:
                if group or globals_:
                    raise ArchiveError("a tar header describes no member", place=Place(offset=start))
                return None
            try:
                kind = block_type(block)
                if kind not in EXTENSION_TYPES:
                    group.append(block)
                    return parse_header(b"".join(group), b"".join(globals_))
                size = extension_size(block)
                data = self._read(padded(size))
                if kind == GLOBAL_TYPE:
                    _refuse_global(data[:size])
                    globals_ += [block, data]
                else:
                    group += [block, data]
            except ArchiveError as error:
                raise error.at(offset=start) from error.__cause__

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            raise self._truncated(size - len(data))
        return data

    def _truncated(self, missing: int) -> ArchiveError:
        return ArchiveError(
            "the tar is truncated",
            place=Place(offset=self._stream.position),
            expected=f"{missing} bytes more",
            found="the end of the stream",
            hint="Download or build the package again",
        )

    def _read_end(self) -> None:
        """Read the rest, which has to be zeros: a second archive would be seen by some programs only."""
        second = self._read(BLOCK_SIZE)
        start = self._stream.position
        if second.count(0) != len(second) or any(part.tobytes().strip(b"\0") for part in self._stream.rest()):
            raise ArchiveError("there are other bytes after the end of the tar", place=Place(offset=start))


def _refuse_global(data: bytes) -> None:
    for key, _ in pax_records(data):
        if key not in _HARMLESS_GLOBALS:
            raise ArchiveError(
                "a pax global header changes the members after it, which is not supported",
                found=key.decode("utf-8", "replace"),
                hint="Unpack and pack the package again (cph extract, cph create)",
            )


class TarWriter:
    """Writes members one after another; ``position`` is the bytes written so far."""

    def __init__(self, write: Callable[[bytes | memoryview], object]) -> None:
        """Hand the tar's bytes to ``write``."""
        self._write = write
        self.position = 0

    def add(self, raw: bytes, size: int, data: Iterable[bytes | memoryview]) -> None:
        """Write a member: its header group (with the globals before it), and ``size`` bytes of data.

        Raises:
            ArchiveError: ``data`` is of another size.
        """
        self._put(raw)
        start = self.position
        for part in data:
            self._put(part)
        written = self.position - start
        if written != size:
            raise ArchiveError(
                "a member's new content is not of the size that its header says",
                expected=f"{size} bytes",
                found=f"{written} bytes",
            )
        self._put(bytes(padded(size) - size))

    def close(self) -> None:
        """Write the end of the archive."""
        self._put(bytes(end_size(self.position)))

    def _put(self, data: bytes | memoryview) -> None:
        self._write(data)
        self.position += len(data)


def end_size(position: int) -> int:
    """Return the bytes of the end of an archive whose members take ``position`` bytes."""
    unpadded = position + 2 * BLOCK_SIZE
    return -(-unpadded // RECORD_SIZE) * RECORD_SIZE - position
