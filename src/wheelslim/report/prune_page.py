"""The page of ``prune``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.report.page import Area, Bar, Cell, Figure, Grid, Page, Tone, area_of, fewer
from wheelslim.selection import Coverage
from wheelslim.units import count_text, saved_text, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wheelslim.account import Share
    from wheelslim.report.model import LibraryReport, PruneReport

_MOST_AREAS = 40


def prune_page(report: PruneReport) -> Page:
    """Lay the report of ``prune`` out as a page."""
    name = report.artifact.rpartition("/")[2] or report.artifact
    output = "nothing written" if report.output is None else report.output
    after = report.size_after
    figures = [Figure("installed", report.installed_before, report.installed_after)]
    if after is not None and (report.size_before, after) != (report.installed_before, report.installed_after):
        figures.insert(0, Figure("file", report.size_before, after))
    shares = _summed(report)
    before = sum(old for old, _ in shares.values())
    figures.append(Figure("device code", before, sum(new for _, new in shares.values())))
    return Page(
        title=name,
        lines=(f"→ {output}", f"for {', '.join(report.targets)}"),
        figures=tuple(figures),
        areas=_areas(report),
        bars=tuple(Bar(label, old, new) for label, (old, new) in shares.items()),
        libraries=_libraries(report),
        coverage=_coverage(report),
        notices=_notices(report),
    )


def _summed(report: PruneReport) -> dict[str, tuple[int, int]]:
    from wheelslim.account import label_order

    totals: dict[str, tuple[int, int]] = {}
    for library in report.libraries:
        for label, share in library.before.items():
            old, new = totals.get(label, (0, 0))
            totals[label] = (old + share.size, new + _size(library.after, label))
    return dict(sorted(totals.items(), key=lambda item: label_order(item[0])))


def _size(shares: Mapping[str, Share], label: str) -> int:
    return shares[label].size if label in shares else 0


def _areas(report: PruneReport) -> tuple[Area, ...]:
    areas = [_area(library) for library in report.libraries]
    rest = report.installed_before - sum(area.size for area in areas)
    return fewer([*areas, Area("other files", max(0, rest), Tone.OTHER)], _MOST_AREAS, "libraries")


def _area(library: LibraryReport) -> Area:
    account = library.account
    sections = [_section(one.name, one.before, one.after) for one in account.sections]
    if account.embedded is not None:
        sections.append(_section("embedded", account.embedded.before, account.embedded.after))
    if not sections:  # An account that does not tell them apart.
        sections = [_section("device code", account.before, account.after)]
    device = sum(area.size for area in sections)
    if len(sections) == 1:  # One level less to draw.
        sections = list(sections[0].parts)
    host = max(0, account.size_before - device - account.stripped)
    rest = [
        Area("host code, symbols", host, Tone.HOST),
        Area("stripped", account.stripped, Tone.DROPPED),
    ]
    return area_of(library.path, Tone.GROUP, [*sections, *rest])


def _section(name: str, before: Mapping[str, Share], after: Mapping[str, Share]) -> Area:
    parts = []
    for label, share in before.items():
        kept = _size(after, label)
        parts.append(Area(label, kept, Tone.KEPT))
        parts.append(Area(label, share.size - kept, Tone.DROPPED))
    return area_of(name, Tone.GROUP, parts)


def _libraries(report: PruneReport) -> Grid:
    rows = []
    for library in report.with_device_code:
        account = library.account
        saved = account.size_before - account.size_after
        rows.append(
            (
                Cell(library.path),
                Cell(size_text(account.size_before), account.size_before),
                Cell(size_text(account.size_after), account.size_after),
                Cell(saved_text(account.size_before, account.size_after), saved),
                Cell(" ".join(library.after) or "nothing", len(library.after)),
                Cell(f"{account.containers:,}", account.containers),
            )
        )
    return Grid(
        ("library", "before", "after", "saved", "kept", "containers"), tuple(rows), frozenset({1, 2, 3, 5})
    )


def _coverage(report: PruneReport) -> Grid:
    rows = []
    for library in report.with_device_code:
        cells = [Cell(library.path)]
        cells.extend(coverage_cell(item.after, item.lost) for item in library.account.coverage)
        rows.append(tuple(cells))
    return Grid(("library", *(item.target for item in report.coverage)), tuple(rows))


def coverage_cell(counts: Mapping[Coverage, int], lost: int = 0) -> Cell:
    """Return a cell of the coverage matrix: the counts, in the tone of what they say."""
    held = [(coverage, counts[coverage]) for coverage in Coverage if counts.get(coverage)]
    if not held:
        return Cell("no code", tone="none")
    words = ", ".join(f"{count:,} {coverage.value}" for coverage, count in held)
    title = "containers by how they serve the target"
    if lost:
        words += f"; {lost:,} changed"
    if len(held) == 1:
        return Cell(words, tone=held[0][0].value.lower(), title=title)
    return Cell(words, tone="mixed", title=title)


def _notices(report: PruneReport) -> tuple[str, ...]:
    notices = list(report.notices)
    if report.stripped:
        notices.append(f"Stripped {size_text(report.stripped)} of symbols and debug information.")
    if report.lost_ptx:
        count = count_text(len(report.lost_ptx), "library", "libraries")
        notices.append(
            f"The PTX of {count} is gone: GPUs newer than the targets cannot run what is left "
            "(keep it with +PTX or --ptx all)."
        )
    if report.dropped:
        notices.append(f"{count_text(len(report.dropped), 'member')} dropped.")
    return tuple(notices)
