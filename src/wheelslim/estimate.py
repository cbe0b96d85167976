"""What pruning for a target would leave, estimated from an inspection: nothing is read again.

The size unpacked is exact but for headers and page borders. That of the compressed file rests on one
measurement: deflate takes 2 to 5 % off entries that are compressed already (docs/results.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.architecture import ComputeCapability
from wheelslim.fatbin.layout import EntryKind
from wheelslim.plan import Request, plan_entries
from wheelslim.selection import Coverage
from wheelslim.targets import Target

if TYPE_CHECKING:
    from wheelslim.device_code import ContainerGroup
    from wheelslim.inspection import InspectedLibrary, Inspection

_DEFLATED_CODE = 0.97
"""Bytes that compressed entries take in a deflated member, per byte."""

_CUBINS = (EntryKind.CUBIN, EntryKind.CUBIN_VARIANT)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Sizes in bytes before and about after pruning for ``targets``.

    ``embedded`` is what ``--embedded`` would take off the unpacked size beyond that. ``covered`` is
    false where nothing in the artifact runs on one of the targets.
    """

    targets: tuple[str, ...]
    size_before: int
    size_after: int
    installed_before: int
    installed_after: int
    embedded: int
    covered: bool


def estimate(inspection: Inspection, request: Request) -> Estimate:
    """Estimate what ``prune`` would leave for ``request``."""
    size = float(inspection.size)
    installed = inspection.installed_size
    embedded = 0
    served = [False] * len(request.devices)
    whole = inspection.size / inspection.installed_size if inspection.installed_size else 1.0
    for library in inspection.libraries:
        dropped, compressed = 0, 0
        for section in library.code.sections:
            for group in section.groups:
                plan = plan_entries(group.entries, request)
                for index, choice in enumerate(plan.before):
                    served[index] = served[index] or choice.coverage is not Coverage.NONE
                gone = [i for i in range(len(group.entries)) if i not in plan.kept]
                if section.embedded:
                    embedded += sum(group.sizes[i] for i in gone)
                else:
                    dropped += sum(group.sizes[i] for i in gone)
                    compressed += sum(group.compressed[i] for i in gone)
        installed -= dropped
        size -= _stored(library, dropped, compressed, whole)
    return Estimate(
        targets=tuple(target.name for target in request.targets),
        size_before=inspection.size,
        size_after=max(0, round(size)),
        installed_before=inspection.installed_size,
        installed_after=installed,
        embedded=embedded,
        covered=all(served) or not inspection.with_device_code,
    )


def _stored(library: InspectedLibrary, dropped: int, compressed: int, whole: float) -> float:
    """Estimate what dropped entries take in the artifact's file."""
    if not library.stored:
        return dropped * whole
    if library.stored >= library.size:
        return float(dropped)
    all_compressed = sum(sum(group.compressed) for group in library.code.groups)
    rest = library.size - all_compressed
    dense = min(_DEFLATED_CODE, library.stored / all_compressed) if all_compressed else 0.0
    loose = max(0.0, library.stored - dense * all_compressed) / rest if rest else 0.0
    return dense * compressed + loose * (dropped - compressed)


def likely_targets(inspection: Inspection) -> tuple[Target, ...]:
    """Return a target for each device that cubins in the artifact were built for."""
    numbers = {number for library in inspection.libraries for number in _numbers(library.code.groups)}
    return tuple(Target(ComputeCapability.of_number(number)) for number in sorted(numbers))


def _numbers(groups: tuple[ContainerGroup, ...]) -> set[int]:
    found = set()
    for group in groups:
        for entry in group.entries:
            if entry.kind in _CUBINS:
                found.add(entry.sm)
            found.update(sub.sm for sub in entry.subs)
    return found
