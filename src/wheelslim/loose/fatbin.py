"""A loose fatbin with only what the targets run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.fatbin.reader import read_tiling
from wheelslim.fatbin.writer import container_pieces
from wheelslim.pieces import Copy, Zeros, total_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wheelslim.fatbin.model import Container
    from wheelslim.pieces import Piece
    from wheelslim.plan import Planner
    from wheelslim.source import Source


def slim_fatbin(
    source: Source,
    planner: Planner,
    rewrite: Callable[[Source, Container, tuple[int, ...]], Sequence[Piece] | None] | None = None,
) -> tuple[Piece, ...] | None:
    """Describe the fatbin at ``source`` with what the plan keeps, or None where that is all.

    Containers stand one after the other at the alignment that they had; ``rewrite`` is that of
    ``LibraryOptions``.

    Raises:
        FatbinFormatError: the file is no sequence of containers.
    """
    tiling = read_tiling(source, 0)
    pieces: list[Piece] = []
    changed = False
    position = 0
    for container in tiling.containers:
        kept = planner.plan(container).kept
        new: Sequence[Piece] = container_pieces(container, kept, 0)
        if rewrite is not None and kept:
            rewritten = rewrite(source, container, kept)
            if rewritten is not None and total_size(rewritten) < total_size(new):
                new = rewritten
        changed = changed or list(new) != [Copy(container.offset, container.size)]
        start = -(-position // tiling.alignment) * tiling.alignment
        pieces.extend([Zeros(start - position)] if start > position else [])
        pieces.extend(new)
        position = start + total_size(new)
    return tuple(pieces) if changed else None
