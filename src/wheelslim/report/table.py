"""Tables for the terminal: one row a line, numbers to the right, paths shortened to what is left.

Without a width (a pipe, a file) nothing is shortened, so that every row stays one whole line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.report.units import fitted_path, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

UNLIMITED = 100_000
"""Columns of a console that never wraps."""

_GAP = 2
_NARROWEST_PATH = 20
_NARROWEST_WRAP = 20


class Align(Enum):
    """How a column is set."""

    LEFT = "left"
    RIGHT = "right"
    PATH = "path"
    """To the left, and shortened where the table would be too wide. One column of a table at most."""
    WRAP = "wrap"
    """To the left, and wrapped between words where the table would be too wide."""


@dataclass
class Table:
    """Rows of text under ``columns`` of (title, alignment); ``totals`` are set off by a rule."""

    columns: Sequence[tuple[str, Align]]
    rows: list[Sequence[str]] = field(default_factory=list)
    totals: list[Sequence[str]] = field(default_factory=list)

    def render(self, width: int | None, *, color: bool = False) -> str:
        """Return the table, lines ending in a newline; at most ``width`` columns wide if that is possible."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        rows = self._fitted(width)
        table = RichTable(
            box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style="bold"
        )
        for title, align in self.columns:
            table.add_column(
                Text(title),
                justify="right" if align is Align.RIGHT else "left",
                no_wrap=align is not Align.WRAP,
                overflow="fold",
            )
        for index, row in enumerate(rows):
            table.add_row(
                *(Text(cell) for cell in row),
                end_section=bool(self.totals) and index == len(self.rows) - 1,
                style="bold" if index >= len(self.rows) else None,
            )
        return printed(table, width, color=color)

    def _fitted(self, width: int | None) -> list[list[str]]:
        rows = [[printable(cell) for cell in row] for row in (*self.rows, *self.totals)]
        paths = [index for index, (_, align) in enumerate(self.columns) if align is Align.PATH]
        if width is None or not paths:
            return rows
        column = paths[0]
        others = 0
        for index, (title, align) in enumerate(self.columns):
            if index != column:
                longest = max([len(title), *(len(row[index]) for row in rows)])
                wrapped = align is Align.WRAP
                others += _GAP + (min(longest, max(len(title), _NARROWEST_WRAP)) if wrapped else longest)
        room = max(width - others, _NARROWEST_PATH)
        for row in rows:
            row[column] = fitted_path(row[column], room)
        return rows


def printed(renderable: object, width: int | None, *, color: bool = False) -> str:
    """Render anything that rich can print; trailing spaces are cut."""
    from io import StringIO

    from rich.console import Console

    console = Console(
        file=StringIO(),
        width=width or UNLIMITED,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        console.print(renderable)
    return "".join(line.rstrip() + "\n" for line in capture.get().splitlines())
