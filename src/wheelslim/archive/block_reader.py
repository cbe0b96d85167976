"""A forward-only reader over a stream of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class BlockReader:
    """Reads a stream of blocks by size; ``position`` is the bytes read so far."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        """Read what ``blocks`` yields."""
        self._blocks = blocks
        self._held = memoryview(b"")
        self.position = 0

    def parts(self, size: int) -> Iterator[memoryview]:
        """Yield the next ``size`` bytes as parts of whatever length; fewer at the end of the stream."""
        while size:
            if not self._held:
                block = next(self._blocks, None)
                if block is None:
                    return
                self._held = memoryview(block)
                continue
            part = self._held[:size]
            self._held = self._held[len(part) :]
            self.position += len(part)
            size -= len(part)
            yield part

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes; fewer at the end of the stream."""
        return b"".join(self.parts(size))

    def rest(self) -> Iterator[memoryview]:
        """Yield what is left of the stream."""
        while True:
            if self._held:
                part, self._held = self._held, memoryview(b"")
                self.position += len(part)
                yield part
            block = next(self._blocks, None)
            if block is None:
                return
            self._held = memoryview(block)
