"""docs/performance.svg: time by way, and how it grows; drawn without any library."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WIDTH, ROW, PLOT = 860, 26, 220
LABELS, VALUES = 230, 90
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.head { font-weight: 600; }
.faint { fill: #59636e; }
.ours { fill: #3b6fd4; stroke: #3b6fd4; }
.others { fill: #8c959f; stroke: #8c959f; }
path { fill: none !important; stroke-width: 2; }
line { stroke: #d1d9e0; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .faint { fill: #9198a1; } line { stroke: #3d444d; }
}
"""


def draw(suites: Mapping[str, Any]) -> str:
    """Return the picture of what is there: bars for torch, lines for bytes and containers."""
    parts: list[str] = []
    top = 10
    if "torch" in suites:
        ways = suites["torch"]["ways"]
        parts.extend(_bars(suites["torch"]["title"], ways, top))
        top += 50 + ROW * len(ways)
    lines = [
        (f"{suites[key]['title']}: seconds", axis, _series(suites[key]["ways"]))
        for key, axis in (("bytes", "GiB"), ("containers", "thousands"))
        if key in suites and len(suites[key]["ways"]) > 1
    ]
    width = WIDTH // 2
    for number, (title, axis, series) in enumerate(lines):
        parts.extend(_lines(title, axis, series, number * width, top))
    height = top + (PLOT + 80 if lines else 0)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _series(ways: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Group ways by what their names say behind the comma: (place on the axis, seconds) of each."""
    found: dict[str, list[tuple[float, float]]] = {}
    for way in ways:
        name = "planning" if "--dry-run" in way["name"] else "all of prune"
        scale = round(way["scale"] / 1000 if way["scale"] >= 1000 else way["scale"], 1)
        found.setdefault(name, []).append((scale, way["wall"]))
    return found


def _bars(title: str, ways: Sequence[Mapping[str, Any]], top: int) -> Iterator[str]:
    yield _text(0, top + 14, f"{title}: seconds, two cores", "head")
    room = WIDTH - LABELS - VALUES
    longest = max(way["wall"] for way in ways)
    for number, way in enumerate(ways):
        y = top + 28 + ROW * number
        kind = "ours" if way["name"].startswith("wheelslim") else "others"
        size = max(1.0, room * way["wall"] / longest)
        yield _text(LABELS - 8, y + 14, way["name"], anchor="end")
        yield f'<rect class="{kind}" x="{LABELS}" y="{y}" width="{size:.1f}" height="{ROW - 8}"/>'
        yield _text(LABELS + size + 6, y + 14, f"{way['wall']:.1f}", "faint")


def _lines(
    title: str, axis: str, series: Mapping[str, list[tuple[float, float]]], left: int, top: int
) -> Iterator[str]:
    points = [point for one in series.values() for point in one]
    right, high = max(x for x, _ in points), _round_up(max(y for _, y in points))
    x0, y0, width = left + 44, top + 36 + PLOT, WIDTH // 2 - 80
    yield _text(left, top + 14, title, "head")
    for step in range(5):
        y = y0 - PLOT * step / 4
        yield f'<line x1="{x0}" y1="{y:.1f}" x2="{x0 + width}" y2="{y:.1f}"/>'
        yield _text(x0 - 6, y + 4, f"{high * step / 4:g}", "faint", "end")
    for x in sorted({x for x, _ in points}):
        if x >= right / 10:
            yield _text(x0 + width * x / right, y0 + 18, f"{x:g}", "faint", "middle")
    yield _text(x0 + width, y0 + 36, axis, "faint", "end")
    for number, (name, line) in enumerate(series.items()):
        kind = "others" if name == "planning" else "ours"
        places = [(x0 + width * x / right, y0 - PLOT * y / high) for x, y in sorted(line)]
        yield f'<path class="{kind}" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in places)}"/>'
        yield from (f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)
        if len(series) > 1:
            yield f'<rect class="{kind}" x="{x0 + 12}" y="{top + 44 + 20 * number}" width="12" height="12"/>'
            yield _text(x0 + 30, top + 55 + 20 * number, name)


def _round_up(value: float) -> float:
    size = 10.0 ** (len(str(int(value))) - 1)
    return next(step * size for step in (1, 2, 4, 8, 10, 20) if step * size >= value)


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
