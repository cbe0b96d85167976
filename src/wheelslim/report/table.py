"""Tables for the terminal: one row a line, numbers to the right, paths shortened to what is left.

Values are never cut: a table that does not fit gives its paths lines of their own, or is wider than the
terminal. Without a width (a pipe, a file) nothing is shortened, so that every row stays one whole line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING

from wheelslim.units import fitted_path, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table as RichTable

UNLIMITED = 100_000
"""Columns of a console that never wraps."""

_GAP = 2
_GOOD_PATH = 20
_NARROWEST_PATH = 12
_GOOD_WRAP = 20
_LONGEST_WORD = 40
"""Columns above which a word of a wrapped column is folded."""


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
    """Rows of text under ``columns`` of (title, alignment); ``totals`` are set off by a rule.

    The paths of totals are labels, which are never shortened.
    """

    columns: Sequence[tuple[str, Align]]
    rows: list[Sequence[str]] = field(default_factory=list)
    totals: list[Sequence[str]] = field(default_factory=list)

    def render(self, width: int | None, *, color: bool = False) -> str:
        """Return the table, lines ending in a newline; at most ``width`` columns wide if that is possible."""
        rows = [[printable(cell) for cell in row] for row in self.rows]
        totals = [[printable(cell) for cell in row] for row in self.totals]
        path = next((n for n, (_, align) in enumerate(self.columns) if align is Align.PATH), None)
        layout = _Layout(self.columns, rows, totals)
        if width is not None:
            layout.shrink(width)
            if path is not None and layout.total > width and len(self.columns) > 1:
                return self._stacked(rows, totals, path, width, color=color)
            if path is not None:
                for row in rows:
                    row[path] = fitted_path(row[path], layout.widths[path])
                layout = _Layout(self.columns, rows, totals)
                layout.shrink(width)
        table = _rich_table(self.columns, layout.widths, rows, totals)
        return printed(table, None if width is None else max(width, layout.total), color=color)

    def _stacked(
        self, rows: list[list[str]], totals: list[list[str]], path: int, width: int, *, color: bool
    ) -> str:
        """Return the table with each path whole on a line of its own, above its rows."""
        from rich.console import Group
        from rich.text import Text

        columns = [column for index, column in enumerate(self.columns) if index != path]
        layout = _Layout(columns, _without(rows, path), _without(totals, path))
        layout.shrink(width)
        parts: list[RenderableType] = [Text(self.columns[path][0], style="bold")]
        parts.append(_rich_table(columns, layout.widths, [], []))
        for block, style in ((rows, ""), (totals, "bold")):
            if block and style:
                parts.append(Text(""))
            for name, group in groupby(block, key=lambda row: row[path]):
                parts.append(Text(name, style=style, no_wrap=True, overflow="ignore"))
                cells = _without(list(group), path)
                parts.append(_rich_table(columns, layout.widths, cells, [], header=False, style=style))
        return printed(Group(*parts), max(width, layout.total), color=color)


class _Layout:
    """The widths of columns, first as wide as their cells are."""

    def __init__(
        self,
        columns: Sequence[tuple[str, Align]],
        rows: list[list[str]],
        totals: list[list[str]],
    ) -> None:
        from rich.cells import cell_len

        self._aligns = [align for _, align in columns]
        cells = [[title, *(row[n] for row in (*rows, *totals))] for n, (title, _) in enumerate(columns)]
        self.widths = [max(map(cell_len, column)) for column in cells]
        words = [
            max((cell_len(word) for cell in column for word in cell.split()), default=1) for column in cells
        ]
        self._words = [min(longest, _LONGEST_WORD) for longest in words]
        self._labels = [
            max(cell_len(title), *(cell_len(row[n]) for row in totals), 0)
            for n, (title, _) in enumerate(columns)
        ]

    @property
    def total(self) -> int:
        """Columns of the terminal that the table takes."""
        return sum(self.widths) + _GAP * (len(self.widths) - 1)

    def shrink(self, width: int) -> None:
        """Make wrapped columns and paths narrower until the table fits, as far as no value is cut."""
        for align, least in (
            (Align.WRAP, [max(word, _GOOD_WRAP) for word in self._words]),
            (Align.PATH, [max(label, _GOOD_PATH) for label in self._labels]),
            (Align.WRAP, self._words),
            (Align.PATH, [max(label, _NARROWEST_PATH) for label in self._labels]),
        ):
            while self.total > width:
                wide = [n for n, one in enumerate(self._aligns) if one is align and self.widths[n] > least[n]]
                if not wide:
                    break
                self.widths[max(wide, key=self.widths.__getitem__)] -= 1


def _without(rows: list[list[str]], column: int) -> list[list[str]]:
    return [[*row[:column], *row[column + 1 :]] for row in rows]


def _rich_table(
    columns: Sequence[tuple[str, Align]],
    widths: list[int],
    rows: list[list[str]],
    totals: list[list[str]],
    *,
    header: bool = True,
    style: str = "",
) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        show_header=header,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for (title, align), width in zip(columns, widths, strict=True):
        table.add_column(
            Text(title),
            justify="right" if align is Align.RIGHT else "left",
            no_wrap=align is not Align.WRAP,
            overflow="fold",
            width=width,
        )
    for index, row in enumerate((*rows, *totals)):
        table.add_row(
            *(Text(cell) for cell in row),
            end_section=bool(totals) and index == len(rows) - 1,
            style="bold" if index >= len(rows) else style or None,
        )
    return table


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
