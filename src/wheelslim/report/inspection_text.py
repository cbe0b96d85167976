"""An inspection as text."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.device_code import compression_shares
from wheelslim.report.table import Align, Table
from wheelslim.units import count_text, printable, share_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.estimate import Estimate
    from wheelslim.inspection import Inspection


class Grouping(Enum):
    """What a row of the table stands for (``--by``)."""

    LIBRARY = "library"
    ARCH = "arch"
    SECTION = "section"
    CONTAINER = "container"


def render_inspection_text(
    inspection: Inspection,
    estimates: Sequence[Estimate],
    console_width: int | None,
    *,
    by: Grouping = Grouping.LIBRARY,
    verbose: bool = False,
    color: bool = False,
) -> str:
    """Return what ``inspect`` prints; ``console_width`` is in columns, None for a pipe.

    ``verbose`` lists every container and every library, also those without device code.
    """
    parts = [printable(f"{inspection.artifact}\n{_summary(inspection)}\n")]
    tables = {
        Grouping.LIBRARY: _by_library,
        Grouping.ARCH: _by_architecture,
        Grouping.SECTION: _by_section,
        Grouping.CONTAINER: _by_container,
    }
    table = tables[by](inspection, verbose)
    if table.rows:
        parts.append(table.render(console_width, color=color))
    else:
        # Sections and containers are those of libraries: loose files have no row there.
        loose = bool(inspection.loose)
        parts.append("No library holds device code.\n" if loose else "No device code was found.\n")
    if by is Grouping.LIBRARY:
        contents = _contents(inspection)
        parts.append(contents.render(console_width, color=color) if contents.rows else "")
    if estimates:
        parts.append(_estimates(estimates).render(console_width, color=color))
    remarks = [f"note: {notice}\n" for notice in inspection.notices]
    remarks.extend(
        f"note: {library.path}: {note}\n" for library in inspection.libraries for note in library.code.notes
    )
    parts.append(printable("".join(remarks)))
    return "\n".join(part for part in parts if part)


def _summary(inspection: Inspection) -> str:
    sizes = size_text(inspection.size)
    if inspection.installed_size != inspection.size:
        sizes += f", {size_text(inspection.installed_size)} installed"
    code = inspection.with_device_code
    containers = sum(section.containers for library in code for section in library.code.sections)
    found = f"{count_text(containers, 'container')} in {count_text(len(code), 'library', 'libraries')}"
    loose = sum(share.entries for share in inspection.loose.values())
    if loose:
        files = count_text(loose, "loose file")
        found = f"{found}, {files}" if code else files
    return f"{inspection.kind.value}, {sizes}; {found}"


def _by_library(inspection: Inspection, verbose: bool) -> Table:
    table = Table(
        (
            ("library", Align.PATH),
            ("size", Align.RIGHT),
            ("device", Align.RIGHT),
            ("unloaded", Align.RIGHT),
            ("architectures", Align.WRAP),
        )
    )
    libraries = inspection.with_device_code
    if verbose:
        others = [library for library in inspection.libraries if not library.code.sections]
        libraries = (*libraries, *sorted(others, key=lambda library: (-library.size, library.path)))
    for library in libraries:
        unloaded = library.code.symbols + library.code.debug
        table.rows.append(
            (
                library.path,
                size_text(library.size),
                size_text(library.code.size) if library.code.size else "-",
                size_text(unloaded) if unloaded else "-",
                " ".join(library.architectures) or "-",
            )
        )
    for label, share in inspection.loose.items():
        files = count_text(share.entries, "loose file")
        table.rows.append((files, size_text(share.size), size_text(share.size), "-", label))
    return table


def _by_architecture(inspection: Inspection, _verbose: bool) -> Table:
    table = Table(
        (
            ("architecture", Align.LEFT),
            ("entries", Align.RIGHT),
            ("size", Align.RIGHT),
            ("share", Align.RIGHT),
            ("libraries", Align.RIGHT),
        )
    )
    shares = inspection.architectures
    total = sum(share.size for share in shares.values())
    for label, share in shares.items():
        holders = sum(label in library.architectures for library in inspection.libraries)
        table.rows.append(
            (
                label,
                f"{share.entries:,}",
                size_text(share.size),
                share_text(share.size, total),
                f"{holders:,}" if holders else "-",
            )
        )
    table.totals.append(
        (
            "all",
            f"{sum(share.entries for share in shares.values()):,}",
            size_text(total),
            "",
            f"{len(inspection.with_device_code):,}",
        )
    )
    return table


def _by_section(inspection: Inspection, _verbose: bool) -> Table:
    table = Table(
        (
            ("library", Align.PATH),
            ("section", Align.LEFT),
            ("size", Align.RIGHT),
            ("containers", Align.RIGHT),
            ("codec", Align.LEFT),
            ("arch", Align.LEFT),
            ("entries", Align.RIGHT),
            ("bytes", Align.RIGHT),
        )
    )
    from wheelslim.inspection import code_sections, group_shares

    for library, section in code_sections(inspection.with_device_code):
        first = (
            library.path,
            section.name,
            size_text(section.size),
            f"{section.containers:,}",
            "+".join(how.value for how in compression_shares(section)) or "-",
        )
        for label, share in group_shares(section.groups).items():
            table.rows.append((*first, label, f"{share.entries:,}", size_text(share.size)))
    return table


def _by_container(inspection: Inspection, verbose: bool) -> Table:
    where: tuple[tuple[str, Align], ...] = (("library", Align.PATH), ("section", Align.LEFT))
    if verbose:
        columns = (*where, ("container", Align.RIGHT), ("offset", Align.RIGHT), ("size", Align.RIGHT))
    else:
        columns = (*where, ("containers", Align.RIGHT), ("size", Align.RIGHT))
    table = Table((*columns, ("entries", Align.WRAP)))
    from wheelslim.inspection import code_sections

    for library, section in code_sections(inspection.with_device_code):
        rows: list[tuple[int, tuple[str, ...]]] = []
        for group in section.groups:
            entries = " ".join(group.labels) or "empty"
            if verbose:
                rows.extend(
                    (place.number, (str(place.number), f"{place.offset:#x}", size_text(place.size), entries))
                    for place in group.places
                )
            else:
                size = sum(place.size for place in group.places)
                rows.append((-len(group.places), (f"{len(group.places):,}", size_text(size), entries)))
        table.rows.extend((library.path, section.name, *cells) for _, cells in sorted(rows))
    return table


def _contents(inspection: Inspection) -> Table:
    table = Table(
        (("content", Align.LEFT), ("files", Align.RIGHT), ("installed", Align.RIGHT), ("share", Align.RIGHT))
    )
    total = inspection.installed_size
    libraries = inspection.libraries
    count = f"{len(libraries):,}"
    parts = [
        ("device code", "", sum(library.code.size for library in libraries)),
        ("host code", count, sum(library.host for library in libraries)),
        ("symbols", "", sum(library.code.symbols for library in libraries)),
        ("debug information", "", sum(library.code.debug for library in libraries)),
        (
            "loose cubins and PTX",
            f"{sum(share.entries for share in inspection.loose.values()):,}",
            sum(share.size for share in inspection.loose.values()),
        ),
    ]
    parts.extend((kind.value, f"{item.files:,}", item.size) for kind, item in inspection.other.items())
    for name, files, size in parts:
        if size:
            table.rows.append((name, files, size_text(size), share_text(size, total)))
    return table


def _estimates(estimates: Sequence[Estimate]) -> Table:
    packed = any(item.size_before != item.installed_before for item in estimates)
    embedded = any(item.embedded for item in estimates)
    columns = [("pruned for", Align.WRAP), ("installed" if packed else "size", Align.LEFT)]
    if packed:
        columns.insert(1, ("file", Align.LEFT))
    if embedded:
        columns.append(("--embedded", Align.RIGHT))
    table = Table(columns)
    for item in estimates:
        row = [", ".join(item.targets)]
        if item.covered:
            if packed:
                row.append(f"{size_text(item.size_before)} → about {size_text(item.size_after)}")
            row.append(f"{size_text(item.installed_before)} → {size_text(item.installed_after)}")
        else:
            row.extend(["nothing in it runs there", ""] if packed else ["nothing in it runs there"])
        if embedded:
            row.append(f"-{size_text(item.embedded)}" if item.embedded else "-")
        table.rows.append(row)
    return table
