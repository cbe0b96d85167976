"""Where each container goes, and which bytes that frees. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.elf.filemap import Overlay
from wheelslim.elf.freerun import AfterCut, FreeRun
from wheelslim.pieces import Zeros, total_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.library import DeviceSection
    from wheelslim.pieces import Piece


@dataclass(frozen=True)
class Placement:
    """The new content of one section.

    ``moved`` maps an old container address to the new one. ``runs`` are free; the overlays hold
    zeros there, one overlay for each run.
    """

    overlays: tuple[Overlay, ...]
    runs: tuple[FreeRun, ...]
    moved: dict[int, int]


def place(part: DeviceSection, contents: Sequence[Sequence[Piece]], *, in_place: bool) -> Placement:
    """Lay the containers' new contents out, each as low as its alignment allows; pinned ones stay.

    ``contents`` are one for each container, none longer than the container was; ranges that they
    copy are file offsets. With ``in_place`` every container stays and only its tail is freed.
    """
    base = part.section.sh_offset
    alignment = part.tiling.alignment
    shift = part.section.sh_addr % alignment
    overlays: list[Overlay] = []
    runs: list[FreeRun] = []
    moved: dict[int, int] = {}

    def free(start: int, end: int, after: AfterCut) -> None:
        if end > start:
            overlays.append(Overlay(base + start, (Zeros(end - start),)))
            runs.append(FreeRun(base + start, end - start, part.index, after))

    cursor = 0
    for container, pieces in zip(part.tiling.containers, contents, strict=True):
        stays = in_place or part.is_pinned(container)
        offset = container.offset if stays else _aligned(cursor, alignment, shift)
        free(cursor, offset, AfterCut.UNMAPPED)
        overlays.append(Overlay(base + offset, tuple(pieces)))
        if offset != container.offset:
            moved[part.address(container)] = part.section.sh_addr + offset
        cursor = offset + total_size(pieces)
        if stays:
            # Code that knows the container may know its old end too.
            free(cursor, container.end, AfterCut.ZEROS)
            cursor = container.end
    free(cursor, part.section.sh_size, AfterCut.UNMAPPED)
    return Placement(tuple(overlays), tuple(runs), moved)


def _aligned(offset: int, alignment: int, shift: int) -> int:
    return -(-(offset + shift) // alignment) * alignment - shift
