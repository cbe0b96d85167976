"""The report of ``prune`` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.report.table import Align, Table
from wheelslim.selection import Coverage
from wheelslim.units import count_text, printable, saved_text, size_text

if TYPE_CHECKING:
    from wheelslim.report.model import LibraryReport, PruneReport

_SHOWN_DROPPED = 10


def render_prune_text(
    report: PruneReport, console_width: int | None, *, verbose: bool = False, color: bool = False
) -> str:
    """Return what ``prune`` prints: a row per library, the totals, and the coverage of each target.

    ``console_width`` is in columns, None for a pipe: then no path is shortened. ``verbose`` adds the
    libraries' notes, the coverage per library, and every dropped member.
    """
    parts = [_heading(report)]
    libraries = report.with_device_code
    if libraries:
        parts.append(_libraries(report, libraries).render(console_width, color=color))
        parts.append(_coverage(report, verbose=verbose).render(console_width, color=color))
    elif report.changed:
        parts.append(_totals(report).render(console_width, color=color))
    else:
        parts.append("No library holds device code.\n")
    parts.append(_remarks(report, verbose=verbose))
    return "\n".join(part for part in parts if part)


def _heading(report: PruneReport) -> str:
    lines = [report.artifact]
    lines.append("→ nothing written" if report.output is None else f"→ {report.output}")
    lines.append(f"for {', '.join(report.targets)}")
    return printable("\n".join(lines)) + "\n"


def _libraries(report: PruneReport, libraries: tuple[LibraryReport, ...]) -> Table:
    table = Table(
        (
            ("library", Align.PATH),
            ("before", Align.RIGHT),
            ("after", Align.RIGHT),
            ("saved", Align.RIGHT),
            ("kept", Align.WRAP),
        )
    )
    for library in libraries:
        account = library.account
        table.rows.append(
            (
                library.path,
                size_text(account.size_before),
                size_text(account.size_after),
                saved_text(account.size_before, account.size_after),
                " ".join(library.after) or "nothing",
            )
        )
    table.totals.extend((*row, "") for row in _total_rows(report))
    return table


def _totals(report: PruneReport) -> Table:
    table = Table((("", Align.LEFT), ("before", Align.RIGHT), ("after", Align.RIGHT), ("saved", Align.RIGHT)))
    table.rows.extend(_total_rows(report))
    return table


def _total_rows(report: PruneReport) -> tuple[tuple[str, str, str, str], ...]:
    known = report.size_after is not None
    after = report.size_after if report.size_after is not None else report.size_before
    return (
        (
            "installed",
            size_text(report.installed_before),
            size_text(report.installed_after),
            saved_text(report.installed_before, report.installed_after),
        ),
        (
            "file",
            size_text(report.size_before),
            size_text(after) if known else "?",
            saved_text(report.size_before, after) if known else "?",
        ),
    )


def _coverage(report: PruneReport, *, verbose: bool) -> Table:
    where: tuple[tuple[str, Align], ...] = (("library", Align.PATH),) if verbose else ()
    table = Table(
        (
            *where,
            ("target", Align.LEFT),
            *((coverage.value, Align.RIGHT) for coverage in Coverage),
            ("changed", Align.RIGHT),
        )
    )
    if verbose:
        for library in report.with_device_code:
            for item in library.account.coverage:
                table.rows.append((library.path, *_coverage_row(item.target, item.after, item.lost)))
    for summary in report.coverage:
        cells = _coverage_row(summary.target, summary.after, summary.lost)
        if verbose:
            table.totals.append(("all libraries", *cells))
        else:
            table.rows.append(cells)
    return table


def _coverage_row(target: str, counts: dict[Coverage, int], lost: int) -> tuple[str, ...]:
    numbers = (*(counts.get(coverage, 0) for coverage in Coverage), lost)
    return (target, *(f"{number:,}" if number else "-" for number in numbers))


def _remarks(report: PruneReport, *, verbose: bool) -> str:
    lines = []
    if report.proof is not None:
        pairs = count_text(report.proof.choices, "pair")
        lines.append(
            f"proved: {pairs} of container and target with identical code, "
            f"{size_text(report.proof.host_bytes)} of host code at the same addresses"
        )
    lines.extend(f"note: {notice}" for notice in report.notices)
    lost = sum(item.lost for item in report.coverage)
    if lost:
        lines.append(
            f"warning: a target no longer runs what it ran before in {count_text(lost, 'container')}; "
            "explain names each"
        )
    if report.stripped:
        lines.append(f"stripped {size_text(report.stripped)} of symbols and debug information")
    if report.lost_ptx:
        count = count_text(len(report.lost_ptx), "library", "libraries")
        lines.append(
            f"note: the PTX of {count} is gone: GPUs newer than your targets cannot run what is left "
            "(keep it with +PTX or --ptx all)"
        )
    if report.dropped:
        shown = report.dropped if verbose else report.dropped[:_SHOWN_DROPPED]
        lines.append(f"dropped {count_text(len(report.dropped), 'member')}:")
        lines.extend(f"  {name}" for name in shown)
        if len(shown) < len(report.dropped):
            lines.append(f"  … and {len(report.dropped) - len(shown):,} more (-v lists them)")
    for library in report.libraries:
        notes = library.account.notes
        if notes and (verbose or library.account.containers):
            lines.extend(f"note: {library.path}: {note}" for note in notes)
    return printable("\n".join(lines)) + "\n" if lines else ""
