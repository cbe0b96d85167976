"""The page of ``inspect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.estimate import kept_labels
from wheelslim.inspection import group_shares
from wheelslim.plan import plan_entries
from wheelslim.report.page import Area, Bar, Cell, Figure, Grid, Page, Tone, area_of, fewer, generation
from wheelslim.report.prune_page import coverage_cell
from wheelslim.units import count_text, saved_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.coverage import Check
    from wheelslim.device_code import CodeSection
    from wheelslim.estimate import Estimate
    from wheelslim.inspection import InspectedLibrary, Inspection
    from wheelslim.plan import Request

_MOST_AREAS = 40


def inspection_page(
    inspection: Inspection, estimates: Sequence[Estimate], check: Check, request: Request | None = None
) -> Page:
    """Lay an inspection out as a page; with a ``request``, what it would drop is set off."""
    name = inspection.artifact.rstrip("/").rpartition("/")[2] or inspection.artifact
    code = inspection.with_device_code
    figures = [Figure("installed", inspection.installed_size)]
    if inspection.size != inspection.installed_size:
        figures.insert(0, Figure("file", inspection.size))
    figures.append(Figure("device code", sum(library.code.size for library in code)))
    lines = [f"{inspection.kind.value} with device code in {count_text(len(code), 'library', 'libraries')}"]
    if request is not None and estimates:
        only = estimates[0]
        figures = [Figure("installed", only.installed_before, only.installed_after, about=True)]
        if only.size_before != only.installed_before:
            figures.insert(0, Figure("file", only.size_before, only.size_after, about=True))
        lines.append(f"what pruning for {', '.join(only.targets)} would leave")
    return Page(
        title=name,
        lines=tuple(lines),
        figures=tuple(figures),
        areas=_areas(inspection, request),
        bars=_bars(inspection, request),
        estimates=None if request is not None else _estimates(estimates),
        libraries=_libraries(inspection),
        coverage=_coverage(check),
        notices=inspection.notices,
    )


def _areas(inspection: Inspection, request: Request | None) -> tuple[Area, ...]:
    areas = [_library(library, request) for library in inspection.libraries]
    areas.extend(
        Area(f"{share.entries:,} loose files {label}", share.size, _loose_tone(label, request))
        for label, share in inspection.loose.items()
    )
    areas.extend(Area(kind.value, item.size, Tone.OTHER) for kind, item in inspection.other.items())
    return fewer(areas, _MOST_AREAS, "libraries")


def _loose_tone(label: str, request: Request | None) -> Tone:
    if request is None:
        return generation(label)
    return Tone.KEPT if label in kept_labels([label], request) else Tone.DROPPED


def _library(library: InspectedLibrary, request: Request | None) -> Area:
    sections = [_section(section, request) for section in library.code.sections]
    if len(sections) == 1:  # One level less to draw.
        sections = list(sections[0].parts)
    return area_of(
        library.path,
        Tone.GROUP,
        [
            *sections,
            Area("host code", library.host, Tone.HOST),
            Area("symbols", library.code.symbols, Tone.UNLOADED),
            Area("debug information", library.code.debug, Tone.UNLOADED),
        ],
    )


def _section(section: CodeSection, request: Request | None) -> Area:
    if request is None:
        shares = group_shares(section.groups)
        return area_of(
            section.name, Tone.GROUP, [Area(label, s.size, generation(label)) for label, s in shares.items()]
        )
    sizes: dict[tuple[str, Tone], int] = {}
    for group in section.groups:
        kept = plan_entries(group.entries, request).kept
        for index, (label, size) in enumerate(zip(group.labels, group.sizes, strict=True)):
            tone = Tone.KEPT if index in kept or section.embedded else Tone.DROPPED
            sizes[label, tone] = sizes.get((label, tone), 0) + size
    return area_of(
        section.name, Tone.GROUP, [Area(label, size, tone) for (label, tone), size in sizes.items()]
    )


def _bars(inspection: Inspection, request: Request | None) -> tuple[Bar, ...]:
    totals = {label: share.size for label, share in inspection.architectures.items()}
    if request is None:
        return tuple(Bar(label, size, tone=generation(label)) for label, size in totals.items())
    kept = dict.fromkeys(totals, 0)
    for library in inspection.libraries:
        for section in library.code.sections:
            for part in _section(section, request).parts:
                if part.tone is Tone.KEPT:
                    kept[part.name] += part.size
    for label in kept_labels(inspection.loose, request):
        kept[label] += inspection.loose[label].size
    return tuple(Bar(label, size, kept[label]) for label, size in totals.items())


def _estimates(estimates: Sequence[Estimate]) -> Grid:
    rows = []
    for item in estimates:
        size = Cell(f"about {size_text(item.size_after)}", item.size_after)
        installed = Cell(size_text(item.installed_after), item.installed_after)
        saved = Cell(
            saved_text(item.installed_before, item.installed_after),
            item.installed_before - item.installed_after,
        )
        rows.append((Cell(", ".join(item.targets)), size, installed, saved))
    return Grid(("target", "file", "installed", "saved"), tuple(rows), frozenset({1, 2, 3}))


def _libraries(inspection: Inspection) -> Grid:
    rows = []
    for library in inspection.with_device_code:
        unloaded = library.code.symbols + library.code.debug
        containers = sum(section.containers for section in library.code.sections)
        rows.append(
            (
                Cell(library.path),
                Cell(size_text(library.size), library.size),
                Cell(size_text(library.code.size), library.code.size),
                Cell(size_text(unloaded) if unloaded else "-", unloaded),
                Cell(f"{containers:,}", containers),
                Cell(" ".join(library.architectures), len(library.architectures)),
            )
        )
    columns = ("library", "size", "device code", "symbols, debug", "containers", "architectures")
    return Grid(columns, tuple(rows), frozenset({1, 2, 3, 4}))


def _coverage(check: Check) -> Grid:
    rows = tuple(
        (Cell(library.path), *(coverage_cell(item.counts) for item in library.targets))
        for library in check.libraries
    )
    return Grid(("library", *check.targets), rows)
