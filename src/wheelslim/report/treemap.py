"""A treemap as nested boxes in percent, so that it fits any width without a script."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from wheelslim.report.page import Tone
from wheelslim.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelslim.report.page import Area

WIDTH = 1080
HEIGHT = 560
"""The size in pixels that boxes are made square for; the page may show them at another."""

_TITLE = 20
_BORDER = 2
_SMALLEST = 40
"""Pixels below which a box is not divided further."""


@dataclass(frozen=True)
class Box:
    """An area with its place in its parent, in percent."""

    area: Area
    left: float
    top: float
    width: float
    height: float
    boxes: tuple[Box, ...] = ()


def lay_out(areas: Sequence[Area], width: float = WIDTH, height: float = HEIGHT) -> tuple[Box, ...]:
    """Place areas in a rectangle of that size in pixels, their parts inside them (squarified treemap)."""
    import squarify

    shown = sorted((area for area in areas if area.size > 0), key=lambda area: (-area.size, area.name))
    if not shown or width <= 0 or height <= 0:
        return ()
    sizes = squarify.normalize_sizes([area.size for area in shown], width, height)
    boxes = []
    for area, place in zip(shown, squarify.squarify(sizes, 0, 0, width, height), strict=True):
        inner_width, inner_height = place["dx"] - 2 * _BORDER, place["dy"] - _TITLE - _BORDER
        divided = area.parts and min(inner_width, inner_height) >= _SMALLEST
        boxes.append(
            Box(
                area,
                100 * place["x"] / width,
                100 * place["y"] / height,
                100 * place["dx"] / width,
                100 * place["dy"] / height,
                lay_out(area.parts, inner_width, inner_height) if divided else (),
            )
        )
    return tuple(boxes)


def treemap_html(areas: Sequence[Area]) -> str:
    """Return the boxes as HTML."""
    return "".join(_box_html(box, "") for box in lay_out(areas))


def _box_html(box: Box, path: str) -> str:
    area = box.area
    name = f"{path} › {area.name}" if path else area.name  # noqa: RUF001
    style = f"left:{box.left:.3f}%;top:{box.top:.3f}%;width:{box.width:.3f}%;height:{box.height:.3f}%"
    title = escape(f"{name}: {size_text(area.size)}")
    label = f"<b>{escape(_short(area.name))}</b> <span>{size_text(area.size)}</span>"
    if box.boxes:
        inner = "".join(_box_html(child, name) for child in box.boxes)
        return (
            f'<div class="box group" style="{style}" title="{title}"><p>{label}</p>'
            f'<div class="inner">{inner}</div></div>'
        )
    parts = "".join(_strip_html(area)) if area.parts else ""
    tone = Tone.GROUP if area.parts else area.tone
    return f'<div class="box {tone.value}" style="{style}" title="{title}">{parts}<p>{label}</p></div>'


def _strip_html(area: Area) -> Iterator[str]:
    """A box too small to be divided shows the tones of its leaves as stripes."""
    sizes: dict[Tone, int] = {}
    for leaf in _leaves(area):
        sizes[leaf.tone] = sizes.get(leaf.tone, 0) + leaf.size
    for tone, size in sizes.items():
        yield f'<i class="{tone.value}" style="flex-grow:{size}"></i>'


def _leaves(area: Area) -> Iterator[Area]:
    if not area.parts:
        yield area
    for part in area.parts:
        yield from _leaves(part)


def tones_of(areas: Sequence[Area]) -> list[Tone]:
    """Return the tones that leaves of ``areas`` have, in the order of their declaration."""
    found = {leaf.tone for area in areas for leaf in _leaves(area)}
    return [tone for tone in Tone if tone in found]


def _short(name: str) -> str:
    return name.rpartition("/")[2] or name
