"""What of a request came to nothing, in words for people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.architecture import Architecture
from wheelslim.plan import PtxPolicy
from wheelslim.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wheelslim.plan import Request
    from wheelslim.report.model import LibraryReport
    from wheelslim.targets import Target

_PTX = "compute_"


def request_notices(request: Request, reports: Mapping[str, LibraryReport]) -> tuple[str, ...]:
    """Tell of PTX that was asked for and is not there, and of a result that no GPU can run."""
    libraries = [report for _, report in sorted(reports.items()) if report.account.before]
    if not libraries:
        return ()
    lines = [line for target in request.targets if target.keep_ptx for line in _forward(target, libraries)]
    if not any(report.account.after or report.account.served_elsewhere for report in libraries):
        lines.append("no device code is left in any library: no GPU can run the result")
    return tuple(lines)


def missing_ptx(request: Request, reports: Mapping[str, LibraryReport]) -> tuple[str, ...]:
    """Return the ``compute_90`` targets of which no library holds the PTX; none with ``--ptx none``."""
    if request.ptx is PtxPolicy.NONE:
        return ()
    held = {label for report in reports.values() for label in report.account.before}
    return tuple(
        t.name for t in request.targets if t.only_ptx is not None and t.only_ptx.ptx_name not in held
    )


def growth_notice(before: int, after: int) -> tuple[str, ...]:
    """Tell of an output that is larger than its input, in bytes: what changed was compressed anew."""
    if after <= before:
        return ()
    return (
        f"the file grew, {size_text(before)} → {size_text(after)}: little went, and what changed is "
        "compressed anew, less tightly than it was (--compression max may help; the original serves as well)",
    )


def _forward(target: Target, libraries: Sequence[LibraryReport]) -> Iterator[str]:
    """A ``+PTX`` target: libraries without PTX, and those whose PTX is for later GPUs only."""
    without = [report.path for report in libraries if not _kept_ptx(report)]
    if without:
        yield (
            f"{target.name}: {_such_as(without)} no PTX to keep, so GPUs of another major than its cubins "
            "cannot run what is left: name them as targets"
        )
    number = target.architecture.number
    later = {
        report.path: min(kept)
        for report in libraries
        if (kept := _kept_ptx(report)) and min(kept).number > number
    }
    if later:
        first = min(later.values())
        yield (
            f"{target.name}: {_such_as(list(later))} PTX only from {first.ptx_name} on: "
            "GPUs between cannot run it"
        )


def _kept_ptx(report: LibraryReport) -> list[Architecture]:
    words = (label.removeprefix(_PTX) for label in report.account.after if label.startswith(_PTX))
    return [Architecture.parse(word) for word in words]


def _such_as(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return f"{paths[0]} has"
    return f"{len(paths):,} libraries such as {paths[0]} have"
