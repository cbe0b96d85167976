"""What a report page shows, whatever command it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Tone(Enum):
    """What an area of the treemap stands for; the value is its CSS class."""

    KEPT = "kept"
    DROPPED = "dropped"
    HOST = "host"
    UNLOADED = "unloaded"
    OTHER = "other"
    MAXWELL = "g5"
    PASCAL = "g6"
    VOLTA = "g7"
    TURING = "g75"
    AMPERE = "g8"
    ADA = "g89"
    HOPPER = "g9"
    BLACKWELL = "g10"
    BLACKWELL_12 = "g12"
    GROUP = "group"


TONE_NAMES = {
    Tone.KEPT: "kept",
    Tone.DROPPED: "dropped",
    Tone.HOST: "host code",
    Tone.UNLOADED: "symbols and debug information",
    Tone.OTHER: "other files",
    Tone.MAXWELL: "Kepler, Maxwell (3.x, 5.x)",
    Tone.PASCAL: "Pascal (6.x)",
    Tone.VOLTA: "Volta (7.0)",
    Tone.TURING: "Turing (7.5)",
    Tone.AMPERE: "Ampere (8.0 to 8.8)",
    Tone.ADA: "Ada (8.9)",
    Tone.HOPPER: "Hopper (9.x)",
    Tone.BLACKWELL: "Blackwell (10.x, 11.x)",
    Tone.BLACKWELL_12: "Blackwell (12.x)",
}
"""What the legend calls them."""


@dataclass(frozen=True)
class Area:
    """A rectangle of the treemap: ``size`` in bytes; with ``parts`` it holds them, and they add up to it."""

    name: str
    size: int
    tone: Tone
    parts: tuple[Area, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A headline: sizes in bytes; ``after`` is None where there is only one."""

    name: str
    before: int
    after: int | None = None
    about: bool = False


@dataclass(frozen=True)
class Bar:
    """Bytes of one architecture; ``after`` is None, and ``tone`` its color, where nothing was pruned."""

    name: str
    before: int
    after: int | None = None
    tone: Tone = Tone.KEPT


@dataclass(frozen=True)
class Cell:
    """Text with what it is sorted by (None: its text), a CSS class, and a longer text to point at."""

    text: str
    value: int | None = None
    tone: str = ""
    title: str = ""


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the row, ``numeric`` are the indexes of right-aligned columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Page:
    """A report: ``title``, lines under it, and its parts; empty parts are left out."""

    title: str
    lines: tuple[str, ...]
    figures: tuple[Figure, ...]
    areas: tuple[Area, ...] = ()
    bars: tuple[Bar, ...] = ()
    libraries: Grid | None = None
    coverage: Grid | None = None
    estimates: Grid | None = None
    notices: tuple[str, ...] = field(default=())


def generation(label: str) -> Tone:
    """Return the tone of an architecture's generation: ``sm_86``, ``compute_90``."""
    digits = "".join(c for c in label.partition("_")[2].partition("+")[0] if c.isdigit())
    number = int(digits) if digits else 0
    for first, tone in (
        (120, Tone.BLACKWELL_12),
        (100, Tone.BLACKWELL),
        (90, Tone.HOPPER),
        (89, Tone.ADA),
        (80, Tone.AMPERE),
        (75, Tone.TURING),
        (70, Tone.VOLTA),
        (60, Tone.PASCAL),
        (30, Tone.MAXWELL),
    ):
        if number >= first:
            return Tone.AMPERE if number == 88 else tone
    return Tone.OTHER


def area_of(name: str, tone: Tone, parts: list[Area]) -> Area:
    """Join parts, the largest first; one part alone takes the place of the group."""
    held = tuple(sorted((part for part in parts if part.size), key=lambda part: (-part.size, part.name)))
    return Area(name, sum(part.size for part in held), tone, held)


def fewer(areas: list[Area], most: int, what: str) -> tuple[Area, ...]:
    """Keep the ``most`` largest areas and join the rest into one: ``120 smaller libraries``."""
    ranked = sorted(areas, key=lambda area: (-area.size, area.name))
    if len(ranked) <= most:
        return tuple(ranked)
    rest = ranked[most - 1 :]
    tone = Tone.OTHER
    return (*ranked[: most - 1], Area(f"{len(rest):,} smaller {what}", sum(area.size for area in rest), tone))
