"""The new file against the old one: what is replaced, what is left out, and where a byte ends up."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.pieces import Copy, Data, Piece, Spool, Zeros, total_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Overlay:
    """New content for the bytes of the original from ``offset`` on, exactly as many as ``pieces`` hold."""

    offset: int
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Bytes that it replaces."""
        return total_size(self.pieces)


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes ``[start, end)`` of the original (file offsets) that the new file leaves out."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.end - self.start


class FileMap:
    """Where the bytes of the original lie once ``gaps`` are left out; gaps are disjoint and sorted."""

    def __init__(self, size: int, gaps: Iterable[Gap]) -> None:
        """Take the original's size and the gaps."""
        self.size = size
        self.gaps = tuple(sorted(gaps, key=lambda gap: gap.start))
        self._starts = [gap.start for gap in self.gaps]
        self._before = [0]
        for gap in self.gaps:
            self._before.append(self._before[-1] + gap.size)

    def new_offset(self, offset: int) -> int:
        """Map a file offset of the original; one inside a gap maps to the gap's place."""
        index = bisect_right(self._starts, offset)
        moved = offset - self._before[index]
        if index and offset < self.gaps[index - 1].end:
            moved += self.gaps[index - 1].end - offset
        return moved

    @property
    def new_size(self) -> int:
        """Bytes that remain of the original."""
        return self.size - self._before[-1]

    def pieces(self, overlays: Sequence[Overlay]) -> list[Piece]:
        """Describe the remaining bytes, with ``overlays`` (disjoint) in place of what they cover."""
        result: list[Piece] = []
        position = 0
        for overlay in sorted(overlays, key=lambda item: item.offset):
            if overlay.offset < position:
                raise AssertionError(f"overlays meet at {overlay.offset:#x}")
            if overlay.offset > position:
                result.extend(self._kept(position, (Copy(position, overlay.offset - position),)))
            result.extend(self._kept(overlay.offset, overlay.pieces))
            position = overlay.offset + overlay.size
        result.extend(self._kept(position, (Copy(position, self.size - position),)))
        return _joined(result)

    def _kept(self, start: int, pieces: Sequence[Piece]) -> Iterator[Piece]:
        """Yield what remains of ``pieces``, which stand at the original's offset ``start``, without gaps."""
        for piece in pieces:
            end = start + piece.size
            index = bisect_right(self._starts, start)
            position = start
            if index and self.gaps[index - 1].end > position:
                position = min(end, self.gaps[index - 1].end)
            while position < end:
                stop = min(end, self._starts[index]) if index < len(self.gaps) else end
                if stop > position:
                    yield _slice(piece, position - start, stop - position)
                if index < len(self.gaps) and self._starts[index] < end:
                    position = min(end, self.gaps[index].end)
                    index += 1
                else:
                    position = stop
            start = end


def _slice(piece: Piece, begin: int, size: int) -> Piece:
    if size == piece.size:
        return piece
    if isinstance(piece, Copy):
        return Copy(piece.offset + begin, size)
    if isinstance(piece, Spool):
        return Spool(piece.source, piece.offset + begin, size)
    if isinstance(piece, Data):
        return Data(piece.data[begin : begin + size])
    return Zeros(size)


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Join neighbours that continue each other, and leave empty ones out."""
    result: list[Piece] = []
    for piece in pieces:
        if not piece.size:
            continue
        last = result[-1] if result else None
        if isinstance(piece, Copy) and isinstance(last, Copy) and last.offset + last.size == piece.offset:
            result[-1] = Copy(last.offset, last.size + piece.size)
        elif isinstance(piece, Zeros) and isinstance(last, Zeros):
            result[-1] = Zeros(last.size + piece.size)
        else:
            result.append(piece)
    return result
