"""A report as one HTML page: no request to anywhere, readable without JavaScript."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from wheelslim.report.page import TONE_NAMES, Tone
from wheelslim.report.treemap import tones_of, treemap_html
from wheelslim.units import saved_text, size_text
from wheelslim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.report.page import Bar, Figure, Grid, Page

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def render_page(page: Page) -> str:
    """Return the whole page; the same report gives the same bytes."""
    parts = "".join(_parts(page))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(page.title)} · wheelslim</title>\n"
        '<link rel="icon" href="data:,">\n'
        f"<style>\n{_beside('page.css')}</style>\n</head>\n<body>\n<main>\n{parts}</main>\n"
        f"<footer>Made by wheelslim {VERSION}. Sizes in KiB, MiB and GiB are powers of 1024.</footer>\n"
        f"<script>\n{_beside('page.js')}</script>\n</body>\n</html>\n"
    )


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _parts(page: Page) -> Iterator[str]:
    lines = "".join(f"<p>{escape(line)}</p>" for line in page.lines)
    yield f"<header>\n<h1>{escape(page.title)}</h1>\n{lines}\n</header>\n"
    yield f'<section class="figures">{"".join(_figure(figure) for figure in page.figures)}</section>\n'
    if page.notices:
        items = "".join(f"<li>{escape(notice)}</li>" for notice in page.notices)
        yield f'<section class="notices"><ul>{items}</ul></section>\n'
    if page.areas:
        legend = "".join(
            f'<li><i class="{tone.value}"></i>{escape(TONE_NAMES[tone])}</li>'
            for tone in tones_of(page.areas)
            if tone in TONE_NAMES
        )
        yield (
            "<section>\n<h2>Where the bytes are</h2>\n"
            f'<ul class="legend">{legend}</ul>\n'
            f'<div class="treemap">{treemap_html(page.areas)}</div>\n</section>\n'
        )
    if page.bars:
        yield f"<section>\n<h2>Device code by architecture</h2>\n{_bars(page.bars)}</section>\n"
    for title, grid in (
        ("Pruned for one device", page.estimates),
        ("Libraries", page.libraries),
        ("Coverage", page.coverage),
    ):
        if grid is not None and grid.rows:
            yield f"<section>\n<h2>{title}</h2>\n{_grid(grid)}</section>\n"


def _figure(figure: Figure) -> str:
    if figure.after is None:
        return f'<div><h3>{escape(figure.name)}</h3><p class="big">{size_text(figure.before)}</p></div>'
    about = "about " if figure.about else ""
    saved = saved_text(figure.before, figure.after)
    return (
        f'<div><h3>{escape(figure.name)}</h3><p class="big">{about}{size_text(figure.after)}</p>'
        f'<p><s>{size_text(figure.before)}</s> <span class="saved">{saved} saved</span></p></div>'
        if figure.after < figure.before
        else f'<div><h3>{escape(figure.name)}</h3><p class="big">{about}{size_text(figure.after)}</p>'
        f"<p>was {size_text(figure.before)}</p></div>"
    )


def _bars(bars: tuple[Bar, ...]) -> str:
    largest = max(bar.before for bar in bars) or 1
    rows = []
    for bar in bars:
        kept = bar.before if bar.after is None else bar.after
        text = size_text(bar.before)
        if bar.after is not None:
            text = f"{text} → {size_text(bar.after) if bar.after else 'dropped'}"
        gone = ' class="gone"' if not kept else ""
        tone = Tone.KEPT if bar.after is not None else bar.tone
        dropped = (
            f'<i class="dropped" style="width:{100 * bar.before / largest:.2f}%"></i>'
            if bar.after is not None
            else ""
        )
        rows.append(
            f'<li{gone}><b>{escape(bar.name)}</b><span class="track">{dropped}'
            f'<i class="{tone.value}" style="width:{100 * kept / largest:.2f}%"></i>'
            f"</span><span>{text}</span></li>"
        )
    return f'<ul class="bars">{"".join(rows)}</ul>\n'


def _grid(grid: Grid) -> str:
    heads = "".join(
        f'<th scope="col"{_class("number" if index in grid.numeric else "")}>{escape(name)}</th>'
        for index, name in enumerate(grid.columns)
    )
    rows = []
    for row in grid.rows:
        cells = []
        for index, cell in enumerate(row):
            classes = " ".join(filter(None, ("number" if index in grid.numeric else "", cell.tone)))
            value = "" if cell.value is None else f' data-value="{cell.value}"'
            title = f' title="{escape(cell.title)}"' if cell.title else ""
            text = escape(cell.text)
            if index:
                label = escape(grid.columns[index])
                cells.append(f'<td data-label="{label}"{_class(classes)}{value}{title}>{text}</td>')
            else:
                cells.append(f'<th scope="row"{_class(classes)}{value}{title}>{text}</th>')
        rows.append(f"<tr>{''.join(cells)}</tr>\n")
    return (
        f'<table class="sortable"><thead><tr>{heads}</tr></thead><tbody>\n{"".join(rows)}</tbody></table>\n'
    )


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""
