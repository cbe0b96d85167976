"""The report of ``wheelhouse``, as text and as JSON values (docs/schema/wheelhouse-report-1.json)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from wheelslim.report.json import prune_json
from wheelslim.report.table import Align, Table
from wheelslim.units import count_text, saved_text, size_text
from wheelslim.wheelhouse.index import SIMPLE

if TYPE_CHECKING:
    from wheelslim.wheelhouse.story import WheelhouseReport

SCHEMA = "wheelslim/wheelhouse-report/1"


def wheelhouse_json(report: WheelhouseReport) -> dict[str, Any]:
    """Return the report as values that ``json.dumps`` takes; sizes in bytes."""
    return {
        "schema": SCHEMA,
        "directory": str(report.directory),
        "requirements": str(report.requirements),
        "wheels": [asdict(wheel) for wheel in report.wheels],
        "slimmed": [prune_json(report.reports[name]) for name in sorted(report.reports)],
        "kept": list(report.kept),
        "reused": list(report.reused),
        "removed": list(report.removed),
        "notices": list(report.notices),
    }


def wheelhouse_text(report: WheelhouseReport, console_width: int | None = None) -> str:
    """Return what ``wheelhouse`` prints: a row per slimmed wheel, and how to install.

    ``console_width`` is in columns, None for a pipe.
    """
    lines = []
    if report.reports:
        table = Table(
            (("wheel", Align.PATH), ("before", Align.RIGHT), ("after", Align.RIGHT), ("saved", Align.RIGHT))
        )
        before = after = 0
        for name in sorted(report.reports):
            one = report.reports[name]
            size = one.size_after if one.size_after is not None else one.size_before
            table.rows.append(
                (name, size_text(one.size_before), size_text(size), saved_text(one.size_before, size))
            )
            before, after = before + one.size_before, after + size
        table.totals.append(("together", size_text(before), size_text(after), saved_text(before, after)))
        lines.append(table.render(console_width, color=False))
    if report.reused:
        lines.append(f"there already: {count_text(len(report.reused), 'wheel')}")
    if report.kept:
        lines.append(f"nothing to slim, kept unchanged: {count_text(len(report.kept), 'wheel')}")
    if report.removed:
        lines.append(f"no longer needed, removed: {count_text(len(report.removed), 'wheel')}")
    lines.extend(f"note: {notice}" for notice in report.notices)
    index = (report.directory / SIMPLE).resolve().as_uri()
    lines.append(f"pip install --require-hashes -r {report.requirements} --index-url {index}")
    return "\n".join(lines) + "\n"
