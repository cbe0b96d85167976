"""The tables of docs/performance.md from docs/performance.json; the rest of the page is kept as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.aims import aims

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BEGIN = "<!-- begin: made by tests/benchmarks/run.py -->"
END = "<!-- end: made by tests/benchmarks/run.py -->"
MIB = 1 << 20
_COLUMNS = ("", "seconds", "of the first", "CPU s", "memory, MiB", "scratch, MiB", "output, MiB")


def render(data: Mapping[str, Any], page: str) -> str:
    """Return the page with the tables replaced, or a new page."""
    made = "\n".join([BEGIN, "", *_aims(data), *_suites(data["suites"]), END])
    if BEGIN not in page:
        return f"{page or '# Performance'}\n\n{made}\n"
    before, _, rest = page.partition(BEGIN)
    return before + made + rest.partition(END)[2]


def _aims(data: Mapping[str, Any]) -> list[str]:
    rows = [aim.row for aim in aims(data)]
    return ["## Aims", "", *_table(("what", "aim", "found", "met"), rows), ""] if rows else []


def _suites(suites: Mapping[str, Any]) -> Iterable[str]:
    for suite in suites.values():
        sizes = f"{suite['sizes']}. " if suite["sizes"] else ""
        runs = len(suite["ways"][0]["walls"])
        yield from (f"## {suite['title'][:1].upper()}{suite['title'][1:]}", "")
        yield from (f"{sizes}Medians of {runs} runs in turn. {suite['machine']}", "")
        yield from (*_table(_COLUMNS, [_row(way, suite["ways"]) for way in suite["ways"]]), "")
        shown = [f"- {way['name']}: `{way['shown']}`" for way in suite["ways"] if way["shown"] != way["name"]]
        yield from (*shown, "") if shown else ()


def _row(way: Mapping[str, Any], ways: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return (
        way["name"],
        f"{way['wall']:.2f}",
        f"{way['wall'] / ways[0]['wall']:.2f} times" if way is not ways[0] else "1",
        f"{way['cpu']:.2f}",
        f"{way['peak'] / MIB:,.0f}",
        f"{way['scratch'] / MIB:,.0f}",
        f"{way['output'] / MIB:,.1f}" if way["output"] else "-",
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = ["---"] + ["---:" if one[:1].isdigit() or one == "" else "---" for one in head[1:]]
    if head is _COLUMNS:
        rule = ["---"] + ["---:"] * (len(head) - 1)
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
