"""The content that pieces describe, readable at random without being written anywhere."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from wheelslim.pieces import Copy, Data, Spool
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelslim.pieces import Piece

_NO_FILE = -1


@dataclass(frozen=True)
class Composed(Source):
    """A Source of what pieces make of an original. It has no descriptor of its own."""

    content: _Content

    @classmethod
    def of(cls, pieces: Iterable[Piece], original: Source) -> Composed:
        """Cover all of ``pieces``, whose copied ranges are those of ``original``."""
        content = _Content(pieces, original)
        return cls(_NO_FILE, 0, content.size, content)

    def read(self, offset: int, size: int) -> bytes:
        """See ``Source.read``."""
        self.check(offset, size)
        return self.content.read(self.base + offset, size)

    def part(self, offset: int, size: int) -> Composed:
        """See ``Source.part``."""
        self.check(offset, size)
        return Composed(self.fd, self.base + offset, size, self.content)


class _Content:
    def __init__(self, pieces: Iterable[Piece], original: Source) -> None:
        self._pieces = tuple(piece for piece in pieces if piece.size)
        ends = array("Q", accumulate(piece.size for piece in self._pieces))
        self._starts = array("Q", [0]) + ends[:-1]
        self._original = original
        self.size = ends[-1] if ends else 0

    def read(self, position: int, size: int) -> bytes:
        parts = []
        index = bisect_right(self._starts, position) - 1
        while size:
            skip = position - self._starts[index]
            piece = self._pieces[index]
            step = min(size, piece.size - skip)
            parts.append(self._part(piece, skip, step))
            position += step
            size -= step
            index += 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _part(self, piece: Piece, skip: int, size: int) -> bytes:
        if isinstance(piece, Copy):
            return self._original.read(piece.offset + skip, size)
        if isinstance(piece, Data):
            return piece.data[skip : skip + size]
        if isinstance(piece, Spool):
            return piece.source.read(piece.offset + skip, size)
        return bytes(size)
