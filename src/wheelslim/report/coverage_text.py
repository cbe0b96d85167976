"""A check of coverage as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.account import label_order
from wheelslim.coverage import Verdict
from wheelslim.report.table import Align, Table
from wheelslim.selection import Coverage
from wheelslim.units import count_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.coverage import Check, Gap, LibraryCheck, TargetCheck

_CELL = 10
"""Columns that a target takes in the matrix, gap included."""

_NARROWEST_PATH = 30
_NUMBERS_A_LINE = 12


def render_check_text(
    check: Check, console_width: int | None, *, verbose: bool = False, color: bool = False
) -> str:
    """Return what ``check`` prints: the matrix, the counts of mixed libraries, and what is not covered.

    ``console_width`` is in columns, None for a pipe. ``verbose`` names the containers.
    """
    parts = [printable(f"{check.artifact}\n")]
    if check.libraries:
        parts.append(_matrix(check, console_width).render(console_width, color=color))
        mixed = _mixed(check)
        if mixed.rows:
            parts.append(mixed.render(console_width, color=color))
    if verbose:
        parts.append(printable("".join(_gaps(check))))
    parts.append(printable("".join(f"note: {notice}\n" for notice in check.notices)))
    parts.append(printable("".join(_failures(check, verbose))))
    parts.append(_result(check))
    return "\n".join(part for part in parts if part)


def _matrix(check: Check, width: int | None) -> Table:
    if width is not None and width < _NARROWEST_PATH + _CELL * len(check.targets):
        table = Table((("library", Align.PATH), ("target", Align.LEFT), ("coverage", Align.LEFT)))
        for library in check.libraries:
            table.rows.extend((_name(library), item.target, _cell(item)) for item in library.targets)
        return table
    table = Table((("library", Align.PATH), *((target, Align.LEFT) for target in check.targets)))
    for library in check.libraries:
        table.rows.append((_name(library), *(_cell(item) for item in library.targets)))
    return table


def _name(library: LibraryCheck) -> str:
    return f"{library.path} (ignored)" if library.ignored else library.path


def _cell(item: TargetCheck) -> str:
    return item.verdict.value if item.covered else f"{item.verdict.value} !"


def _mixed(check: Check) -> Table:
    table = Table(
        (
            ("mixed: containers of", Align.PATH),
            ("target", Align.LEFT),
            *((coverage.value, Align.RIGHT) for coverage in Coverage),
        )
    )
    for library in check.libraries:
        for item in library.targets:
            if item.verdict is Verdict.MIXED:
                counts = (item.counts.get(coverage, 0) for coverage in Coverage)
                table.rows.append(
                    (library.path, item.target, *(f"{count:,}" if count else "-" for count in counts))
                )
    return table


def _gaps(check: Check) -> Iterator[str]:
    for library in check.libraries:
        for item in library.targets:
            for gap in item.gaps:
                if gap.places:
                    yield f"{library.path}: nothing for {item.target} in {_containers(gap)}\n"


def _containers(gap: Gap) -> str:
    places = gap.places
    numbers = ", ".join(str(place.number) for place in places[:_NUMBERS_A_LINE])
    more = f" and {len(places) - _NUMBERS_A_LINE:,} more" if len(places) > _NUMBERS_A_LINE else ""
    holds = " ".join(gap.labels)
    return f"{count_text(len(places), 'container')} of {gap.section} with {holds}: {numbers}{more}"


def _failures(check: Check, verbose: bool) -> Iterator[str]:
    for library, item in check.failures:
        if item.verdict is Verdict.NONE:
            held = {label for gap in item.gaps for label in gap.labels}
            labels = " ".join(sorted(held, key=label_order))
            what = f"it holds {labels}" if labels else "all of its containers are empty"
            yield f"not covered: {library.path} has nothing for {item.target}; {what}\n"
        else:
            count = item.counts.get(Coverage.NONE, 0)
            hint = "" if verbose else " (-v names them)"
            yield (
                f"not covered (--strict): {library.path} has {count_text(count, 'container')} "
                f"without anything for {item.target}{hint}\n"
            )


def _result(check: Check) -> str:
    if not check.libraries:
        return "No library with device code.\n"
    pairs = sum(len(library.targets) for library in check.libraries if not library.ignored)
    failed = len(check.failures)
    if failed:
        return f"{failed:,} of {count_text(pairs, 'pair')} of library and target not covered.\n"
    return f"covered: {', '.join(check.targets)}\n"
