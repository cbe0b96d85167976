"""Random access to bytes that lie in a file, without holding them."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.errors import ArtifactError, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 1 << 20

if hasattr(os, "pread"):
    _pread = os.pread
else:  # Windows has no positional read: one lock keeps seek and read together.
    _seek_lock = threading.Lock()

    def _pread(fd: int, size: int, offset: int, /) -> bytes:
        with _seek_lock:
            os.lseek(fd, offset, os.SEEK_SET)
            return os.read(fd, size)


@dataclass(frozen=True)
class Source:
    """``size`` bytes of the open file ``fd`` that start at file offset ``base``.

    A library on disk, a scratch file, or a stored member inside a wheel. Reads are positional
    (``pread``), so threads can share one Source. It does not own the descriptor.
    """

    fd: int
    base: int
    size: int

    @classmethod
    def of_file(cls, fd: int) -> Source:
        """Cover the whole of the open file ``fd``."""
        return cls(fd, 0, os.fstat(fd).st_size)

    def read(self, offset: int, size: int) -> bytes:
        """Read exactly ``size`` bytes at ``offset`` (bytes from this source's start).

        Raises:
            ArtifactError: the range passes the end of the source, or the file became shorter.
        """
        self.check(offset, size)
        parts = []
        position = self.base + offset
        while size:
            part = _pread(self.fd, size, position)
            if not part:
                raise ArtifactError(
                    "the file became shorter while it was read",
                    place=Place(offset=position - self.base),
                    hint="Run again when nothing else writes to it",
                )
            parts.append(part)
            position += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def blocks(self, offset: int = 0, size: int | None = None, block: int = BLOCK) -> Iterator[bytes]:
        """Yield the bytes of a range in blocks of at most ``block`` bytes."""
        end = self.size if size is None else offset + size
        while offset < end:
            step = min(block, end - offset)
            yield self.read(offset, step)
            offset += step

    def part(self, offset: int, size: int) -> Source:
        """Return the range as a Source of its own."""
        self.check(offset, size)
        return Source(self.fd, self.base + offset, size)

    def check(self, offset: int, size: int) -> None:
        """Raise ArtifactError unless ``size`` bytes lie at ``offset``."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ArtifactError(
                "a range passes the end of the data",
                place=Place(offset=offset),
                expected=f"at most {self.size} bytes",
                found=f"{size} bytes at {offset}",
            )
