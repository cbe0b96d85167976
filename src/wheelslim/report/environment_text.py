"""The report of ``env`` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.report.text import render_prune_text
from wheelslim.units import count_text

if TYPE_CHECKING:
    from wheelslim.environment.outcome import EnvironmentReport

_SHOWN = 6


def render_environment_text(
    report: EnvironmentReport, console_width: int | None, *, verbose: bool = False, color: bool = False
) -> str:
    """Return what ``env`` prints: the tables of ``prune``, and what was replaced and booked.

    ``verbose`` names every package; see ``render_prune_text`` for the rest.
    """
    lines = []
    if report.finished:
        libraries = count_text(len(report.finished), "library", "libraries")
        lines.append(f"finished the books of {libraries} of an earlier run that was stopped")
    if not report.prune.dry_run:
        files = count_text(len(report.changed), "file")
        lines.append(f"{files} changed" + (" (a second run changes nothing)" if report.changed else ""))
    if report.packages:
        shown = report.packages if verbose else report.packages[:_SHOWN]
        more = len(report.packages) - len(shown)
        lines.append(
            f"books of {count_text(len(report.packages), 'package')} brought up to date: "
            + ", ".join(shown)
            + (f" and {more} more (-v lists them)" if more else "")
        )
    if report.passed_over:
        lines.append(f"{count_text(len(report.passed_over), 'file')} passed over, see the messages")
    text = render_prune_text(report.prune, console_width, verbose=verbose, color=color)
    return text + ("\n" + "\n".join(lines) + "\n" if lines else "")
