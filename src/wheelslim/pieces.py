"""A file described as pieces: ranges of the original or of a spool, new bytes, and zeros.

The dry run and the real run share one list of pieces; only the real run streams it. Nothing large
is held: a copied range is read in blocks when it is streamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from wheelslim.source import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wheelslim.source import Source

_ZEROS = bytes(BLOCK)


@dataclass(frozen=True, slots=True)
class Copy:
    """``size`` bytes of the original from its offset ``offset``."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes that the original does not have."""

    data: bytes

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self.data)


@dataclass(frozen=True, slots=True)
class Zeros:
    """``size`` zero bytes."""

    size: int


@dataclass(frozen=True, slots=True)
class Spool:
    """``size`` bytes from the offset ``offset`` of another source: new ones, too many to hold."""

    source: Source
    offset: int
    size: int


Piece: TypeAlias = "Copy | Data | Spool | Zeros"


def total_size(pieces: Iterable[Piece]) -> int:
    """Sum the sizes, in bytes."""
    return sum(piece.size for piece in pieces)


def stream(pieces: Iterable[Piece], source: Source, block: int = BLOCK) -> Iterator[bytes]:
    """Yield the described bytes in blocks of exactly ``block`` bytes, the last one shorter.

    Even block borders make the compressed result independent of how the pieces are cut.

    Raises:
        ArtifactError: a copied range passes the end of ``source``.
    """
    pending: list[bytes] = []
    held = 0
    for piece in pieces:
        for part in _piece_blocks(piece, source, block):
            pending.append(part)
            held += len(part)
            while held >= block:
                joined = pending[0] if len(pending) == 1 else b"".join(pending)
                if len(joined) == block:
                    yield joined
                    pending, held = [], 0
                else:
                    yield joined[:block]
                    pending, held = [joined[block:]], held - block
    if held:
        yield b"".join(pending)


def _piece_blocks(piece: Piece, source: Source, block: int) -> Iterator[bytes]:
    if isinstance(piece, Copy):
        yield from source.blocks(piece.offset, piece.size, block)
    elif isinstance(piece, Spool):
        yield from piece.source.blocks(piece.offset, piece.size, block)
    elif isinstance(piece, Data):
        if piece.data:
            yield piece.data
    else:
        left = piece.size
        while left:
            step = min(left, len(_ZEROS))
            yield _ZEROS[:step] if step < len(_ZEROS) else _ZEROS
            left -= step
