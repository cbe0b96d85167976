"""Numbers as people read them: sizes, counts, shares, and paths that fit a column."""

from __future__ import annotations

_STEP = 1024
_UNITS = ("KiB", "MiB", "GiB")
_SHORTEST_PATH = 12


def size_text(size: int) -> str:
    """Write bytes in the unit that fits: ``479.5 MiB``, ``1.03 GiB``, ``812 B``."""
    if size < _STEP:
        return f"{size} B"
    power = next((n for n in (1, 2) if round(size / _STEP**n, 1) < _STEP), 3)
    return f"{size / _STEP**power:.{max(power - 1, 1)}f} {_UNITS[power - 1]}"


def saved_text(before: int, after: int) -> str:
    """Write what went as a share: ``45.4 %``; nothing where nothing went."""
    if after == before or not before:
        return "-"
    return f"{100 * (before - after) / before:.1f} %".replace("-0.0", "0.0")


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun: ``1 library``, ``2,782 containers``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def fitted_path(path: str, width: int) -> str:
    """Shorten a path from the left, so that its file name stays: ``…/lib/libtorch_cuda.so``.

    A name that does not fit loses its middle: extension modules end alike, libraries begin alike.
    """
    width = max(width, _SHORTEST_PATH)
    if len(path) <= width:
        return path
    parts = path.split("/")
    kept = parts.pop()
    while parts and len(kept) + len(parts[-1]) + 3 <= width:
        kept = f"{parts.pop()}/{kept}"
    if len(kept) + 2 <= width:
        return f"…/{kept}"
    tail = (width - 1) // 2
    return f"{kept[: width - 1 - tail]}…{kept[-tail:]}"


def share_text(part: int, whole: int) -> str:
    """Write a share of the whole: ``26.1 %``."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def printable(text: str) -> str:
    """Escape what could steer a terminal, or is no text at all: names come from artifacts."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
