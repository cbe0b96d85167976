"""An explanation as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.explanation import containers_of
from wheelslim.report.table import Align, Table
from wheelslim.units import count_text, printable, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.explanation import ExplainedGroup, ExplainedPlace, Explanation
    from wheelslim.selection import Choice

_NUMBERS_A_LINE = 12
_KERNELS = 20


def render_explanation_text(
    explanation: Explanation, console_width: int | None, *, verbose: bool = False, color: bool = False
) -> str:
    """Return what ``explain`` prints: containers that are alike once, with what each device makes of them.

    ``console_width`` is in columns, None for a pipe. ``verbose`` names all kernels and containers.
    """
    where = explanation.library
    if not explanation.artifact.endswith(where):
        where = f"{explanation.artifact}: {where}"
    count = count_text(containers_of(explanation.groups), "container")
    kinds = count_text(len(explanation.groups), "kind")
    parts = [printable(f"{where}\nfor {', '.join(explanation.targets)}; {count} of {kinds}\n")]
    for group in sorted(explanation.groups, key=lambda group: -len(group.places)):
        parts.append(printable("".join(_heading(group, verbose))))
        if group.entries:
            parts.append(_entries(explanation, group).render(console_width, color=color))
        parts.append("".join(_choices(explanation, group)))
        parts.extend(
            printable("".join(_kernels(place, len(group.places) > 1, verbose))) for place in group.places
        )
    parts.append(printable("".join(f"note: {notice}\n" for notice in explanation.notices)))
    return "\n".join(part for part in parts if part)


def _heading(group: ExplainedGroup, verbose: bool) -> Iterator[str]:
    if len(group.places) == 1:
        place = group.places[0]
        wrappers = ", ".join(f"{address:#x}" for address in place.wrappers)
        named = f"wrapper at {wrappers}" if wrappers else "no wrapper"
        yield (
            f"container {place.number} of {group.section}: address {place.address:#x}, {named}, "
            f"{size_text(place.size)}\n"
        )
        return
    shown = group.places if verbose else group.places[:_NUMBERS_A_LINE]
    numbers = ", ".join(str(place.number) for place in shown)
    more = f" and {len(group.places) - len(shown):,} more" if len(shown) < len(group.places) else ""
    size = size_text(sum(place.size for place in group.places))
    yield f"{len(group.places):,} containers of {group.section}, {size}: {numbers}{more}\n"


def _entries(explanation: Explanation, group: ExplainedGroup) -> Table:
    table = Table(
        (
            ("#", Align.RIGHT),
            ("entry", Align.LEFT),
            *((device, Align.WRAP) for device in explanation.devices),
            ("pruned", Align.WRAP),
        )
    )
    for index, entry in enumerate(group.entries):
        kept = entry.verdict.text if entry.verdict.reason.keeps else "dropped"
        table.rows.append((str(index), entry.label, *(one.why for one in entry.standings), kept))
    return table


def _choices(explanation: Explanation, group: ExplainedGroup) -> Iterator[str]:
    for device, before, after in zip(explanation.devices, group.before, group.after, strict=True):
        if before == after:
            yield f"{device} runs {_choice(before)}, before and after\n"
        else:
            yield f"{device} runs {_choice(before)} before and {_choice(after)} after: CHANGED\n"


def _choice(choice: Choice) -> str:
    if not choice.entries:
        return "nothing of it"
    numbers = " or ".join(str(index) for index in choice.entries)
    return f"entry {numbers} ({choice.text})"


def _kernels(place: ExplainedPlace, several: bool, verbose: bool) -> Iterator[str]:
    if place.kernels is None:
        return
    of = f" of container {place.number}" if several else ""
    if not place.kernels and not place.fault:
        yield f"no kernels{of}\n"
        return
    yield f"{count_text(len(place.kernels), 'kernel')}{of}:\n"
    shown = place.kernels if verbose else place.kernels[:_KERNELS]
    for name in shown:
        yield f"  {name}\n"
    if len(shown) < len(place.kernels):
        yield f"  … and {len(place.kernels) - len(shown):,} more (-v lists them)\n"
    if place.fault:
        yield f"  not all can be named: {place.fault}\n"
