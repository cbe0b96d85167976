"""Counting a build prefix in a stream, across the borders of its blocks."""

from __future__ import annotations


class OccurrenceCounter:
    """Counts the non-overlapping occurrences of ``pattern`` in the bytes it is fed."""

    def __init__(self, pattern: bytes) -> None:
        """Count ``pattern``, which is not empty."""
        self._pattern = pattern
        self._carry = b""
        self.count = 0

    def feed(self, block: bytes | memoryview) -> None:
        """Take the next bytes in."""
        held = self._carry + block
        position = 0
        while (found := held.find(self._pattern, position)) >= 0:
            self.count += 1
            position = found + len(self._pattern)
        self._carry = held[max(position, len(held) - len(self._pattern) + 1) :]
