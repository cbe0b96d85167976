"""A container with fewer entries, as pieces of the original."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.fatbin.layout import CONTAINER_HEADER, CONTAINER_MAGIC, CONTAINER_VERSION
from wheelslim.pieces import Copy, Data

if TYPE_CHECKING:
    from collections.abc import Collection

    from wheelslim.fatbin.model import Container
    from wheelslim.pieces import Piece


def container_pieces(container: Container, kept: Collection[int], base: int) -> list[Piece]:
    """Describe ``container`` with only the entries whose indexes are in ``kept``, in their order.

    ``base`` is the offset, in the source that the pieces copy from, of the place that the
    container's own offsets count from. A container without any entry is a header with size 0, which
    is what NVIDIA's nvprune leaves and cuobjdump accepts (docs/fatbin-format.md).
    """
    if len(kept) == len(container.entries):
        return [Copy(base + container.offset, container.size)]
    body = sum(container.entries[index].size for index in kept)
    header = CONTAINER_HEADER.pack(CONTAINER_MAGIC, CONTAINER_VERSION, container.header_size, body)
    pieces: list[Piece] = [Data(header)]
    run_start = run_end = -1
    for index in sorted(kept):
        entry = container.entries[index]
        if entry.offset != run_end:
            if run_end > run_start:
                pieces.append(Copy(base + run_start, run_end - run_start))
            run_start = entry.offset
        run_end = entry.offset + entry.size
    if run_end > run_start:
        pieces.append(Copy(base + run_start, run_end - run_start))
    return pieces
