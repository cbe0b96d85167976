"""What pruning for a target would leave, estimated from an inspection: nothing is read again.

The size unpacked is exact but for headers and page borders. That of the compressed file rests on two
measurements: what deflate takes off entries that are compressed already, and off the rest of a library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.architecture import Architecture, ComputeCapability
from wheelslim.errors import TargetError
from wheelslim.fatbin.layout import EntryKind
from wheelslim.loose.decision import decide
from wheelslim.loose.image import LooseImage, LooseKind
from wheelslim.plan import Request, plan_entries
from wheelslim.selection import Coverage
from wheelslim.targets import Target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelslim.device_code import ContainerGroup
    from wheelslim.inspection import InspectedLibrary, Inspection

_DEFLATED_CODE = 0.97
"""Bytes that compressed entries take in a deflated member, per byte. Entries in LZ4 take less."""

_DEFLATED_REST = 0.25
"""Bytes that the rest of a library takes at least, per byte: host code 0.3 to 0.4, symbols 0.2."""

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
    kept = kept_labels(inspection.loose, request)
    loose = sum(share.size for label, share in inspection.loose.items() if label not in kept)
    installed -= loose
    size -= loose * whole
    for index, device in enumerate(request.devices):
        served[index] = served[index] or _serves(inspection.loose, device)
    return Estimate(
        targets=tuple(target.name for target in request.targets),
        size_before=inspection.size,
        size_after=max(0, round(size)),
        installed_before=inspection.installed_size,
        installed_after=installed,
        embedded=embedded,
        covered=all(served) or not (inspection.with_device_code or inspection.loose),
    )


def kept_labels(labels: Iterable[str], request: Request) -> frozenset[str]:
    """Return those of loose files' architectures that pruning keeps, as if they were one file's variants."""
    images = [image for label in labels if (image := _image(label)) is not None]
    known = {image.name for image in images}
    return frozenset(decide(images, request).kept) | {label for label in labels if label not in known}


def _image(label: str) -> LooseImage | None:
    kind = LooseKind.PTX if label.startswith("compute_") else LooseKind.CUBIN
    try:
        architecture = Architecture.parse(label)
    except TargetError:
        return None
    return LooseImage(label, 0, kind, architecture)


def _serves(loose: Iterable[str], device: Target) -> bool:
    """Whether a loose file runs on ``device``; one of unknown architecture may."""
    images = [_image(label) for label in loose]
    known = [image for image in images if image is not None]
    return len(known) < len(images) or device.name in decide(known, Request((device,))).served


def _stored(library: InspectedLibrary, dropped: int, compressed: int, whole: float) -> float:
    """Estimate what dropped entries take in the artifact's file."""
    if not library.stored:
        return dropped * whole
    if library.stored >= library.size:
        return float(dropped)
    all_compressed = sum(sum(group.compressed) for group in library.code.groups)
    rest = library.size - all_compressed
    dense = 0.0
    if all_compressed:
        most = max(0.0, library.stored - _DEFLATED_REST * rest) / all_compressed
        dense = min(_DEFLATED_CODE, most)
    loose = max(0.0, library.stored - dense * all_compressed) / rest if rest else 0.0
    return dense * compressed + loose * (dropped - compressed)


def likely_targets(inspection: Inspection) -> tuple[Target, ...]:
    """Return a target for each device that cubins in the artifact were built for."""
    numbers = {number for library in inspection.libraries for number in _numbers(library.code.groups)}
    images = [_image(label) for label in inspection.loose]
    numbers |= {
        image.architecture.number
        for image in images
        if image is not None and image.architecture is not None and image.kind is LooseKind.CUBIN
    }
    return tuple(Target(ComputeCapability.of_number(number)) for number in sorted(numbers))


def _numbers(groups: tuple[ContainerGroup, ...]) -> set[int]:
    found = set()
    for group in groups:
        for entry in group.entries:
            if entry.kind in _CUBINS:
                found.add(entry.sm)
            found.update(sub.sm for sub in entry.subs)
    return found
