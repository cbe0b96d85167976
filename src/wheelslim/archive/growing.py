"""A range of a file that one thread writes while another reads behind it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from wheelslim.archive.workers import StoppedError
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

_READ = 1 << 18


class GrowingRange:
    """The bytes of the open file ``fd`` from ``start`` on, as far as they are written."""

    def __init__(self, fd: int) -> None:
        """Begin empty; ``start`` is where the first byte lies, None while there is none."""
        self._fd = fd
        self._changed = threading.Condition()
        self._size = 0
        self._ended = False
        self._failed = False
        self.start: int | None = None

    def grew(self, offset: int, size: int) -> None:
        """Tell that ``size`` bytes more lie at ``offset``, where the last ones ended."""
        with self._changed:
            if self.start is None:
                self.start = offset
            self._size += size
            self._changed.notify_all()

    def end(self, failed: bool = False) -> None:
        """Tell that there will be no more; with ``failed``, readers stop with StoppedError."""
        with self._changed:
            self._ended = True
            self._failed = failed
            self._changed.notify_all()

    def blocks(self) -> Iterator[bytes]:
        """Yield all bytes in order, waiting for those that are not written yet.

        Raises:
            StoppedError: the writer failed.
        """
        done = 0
        while True:
            ready, last = self._wait(done + _READ)
            if self.start is not None:
                yield from Source(self._fd, self.start, ready).blocks(done, ready - done, _READ)
            done = ready
            if last:
                return

    def _wait(self, size: int) -> tuple[int, bool]:
        """Wait for ``size`` bytes or the end; return how many there are, and whether that is all."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._size >= size)
            if self._failed:
                raise StoppedError
            return self._size, self._ended
