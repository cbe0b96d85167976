"""Whether devices are served: each library's containers against each target, for CI.

A container that serves a device with nothing is no fault by itself. Libraries hold code that only newer
devices have instructions for, and NVIDIA's hold containers for one architecture each beside others for
the rest. A library fails a target only if none of its containers serves it; ``strict`` also fails it
for every container that holds code for other devices alone (docs/cli.md, "check").
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from wheelslim.architecture import Architecture
from wheelslim.devices import devices_of
from wheelslim.errors import TargetError
from wheelslim.inspection import survey
from wheelslim.selection import Coverage, choose, runs_cubin, runs_ptx
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from wheelslim.device_code import CodeSection, ContainerPlace
    from wheelslim.devices import TargetsGiven
    from wheelslim.inspection import InspectedLibrary, Inspection
    from wheelslim.targets import Target


LOOSE = "loose cubins and PTX"
"""What stands in the place of a path for device code in files of its own."""


class Verdict(Enum):
    """How a library as a whole serves a target."""

    EXACT = "exact"
    COMPATIBLE = "compatible"
    JIT = "JIT"
    MIXED = "mixed"
    """Its containers differ; some serve the target."""
    NONE = "none"
    """It has device code, and nothing of it runs on the target."""
    UNKNOWN = "unknown"
    """Its entries are of kinds that the driver's rule does not speak of."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Containers of one section that hold code (for ``labels``), but none for the target.

    For loose files ``section`` is LOOSE, and there are no places.
    """

    section: str
    labels: tuple[str, ...]
    places: tuple[ContainerPlace, ...]


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """How one library serves one target.

    ``counts`` are of containers, without empty ones, and without results of a device link that
    hold nothing for the target: they never hold PTX, and the code is in the containers beside them.
    """

    target: str
    verdict: Verdict
    counts: dict[Coverage, int]
    gaps: tuple[Gap, ...]
    covered: bool


@dataclass(frozen=True, slots=True)
class LibraryCheck:
    """One library against all targets; ``ignored`` ones do not count."""

    path: str
    targets: tuple[TargetCheck, ...]
    ignored: bool = False


@dataclass(frozen=True)
class Check:
    """One artifact against all targets; ``notices`` are sentences for people."""

    artifact: str
    targets: tuple[str, ...]
    strict: bool
    libraries: tuple[LibraryCheck, ...]
    notices: tuple[str, ...] = ()

    @property
    def covered(self) -> bool:
        """Whether every library that is not ignored serves every target."""
        return not self.failures

    @property
    def failures(self) -> tuple[tuple[LibraryCheck, TargetCheck], ...]:
        """The pairs of library and target that fail."""
        return tuple(
            (library, item)
            for library in self.libraries
            if not library.ignored
            for item in library.targets
            if not item.covered
        )


def check(
    path: str | PathLike[str],
    targets: TargetsGiven,
    *,
    strict: bool = False,
    ignore: Iterable[str] = (),
) -> Check:
    """Check that the devices ``targets`` are served by every library of an artifact.

    ``targets`` are words such as ``"sm_80,sm_86"``, or Targets. Libraries whose path, or file name,
    matches a pattern of ``ignore`` (as in ``fnmatch``) are shown and do not count.

    Raises:
        TargetError: a word is unknown.
        UsageError: no target is a device.
        WheelslimError: whatever is wrong with the artifact, with its place.
    """
    return check_inspection(survey(path, links=True), devices_of(targets), strict=strict, ignore=ignore)


def check_inspection(
    inspection: Inspection, devices: Iterable[Target], *, strict: bool = False, ignore: Iterable[str] = ()
) -> Check:
    """Do what ``check`` does with an inspection that knows the results of device links."""
    devices, patterns = tuple(devices), tuple(ignore)
    paths = [LOOSE, *(library.path for library in inspection.with_device_code)]
    idle = [one for one in patterns if not any(_matches(path, (one,)) for path in paths)]
    return Check(
        artifact=inspection.artifact,
        targets=tuple(device.name for device in devices),
        strict=strict,
        libraries=tuple(
            LibraryCheck(
                library.path,
                tuple(_check_target(library, device, strict) for device in devices),
                _matches(library.path, patterns),
            )
            for library in inspection.with_device_code
        )
        + _loose(inspection, devices, patterns),
        notices=(
            *inspection.notices,
            *_stamp_notices(inspection, devices),
            *(f"--ignore {pattern} matches no library with device code" for pattern in idle),
        ),
    )


def _loose(
    inspection: Inspection, devices: tuple[Target, ...], patterns: tuple[str, ...]
) -> tuple[LibraryCheck, ...]:
    """Check cubins and PTX in files of their own, all as one: which is used, the application knows."""
    if not inspection.loose:
        return ()
    checks = []
    for device in devices:
        counts: Counter[Coverage] = Counter()
        for label, share in inspection.loose.items():
            counts[_loose_coverage(label, device)] += share.entries
        counts = +counts
        verdict = Verdict(next(iter(counts)).value) if len(counts) == 1 else Verdict.MIXED
        idle = tuple(label for label in inspection.loose if _loose_coverage(label, device) is Coverage.NONE)
        gaps = (Gap(LOOSE, idle, ()),) if idle else ()
        checks.append(TargetCheck(device.name, verdict, dict(counts), gaps, verdict is not Verdict.NONE))
    return (LibraryCheck(LOOSE, tuple(checks), _matches(LOOSE, patterns)),)


def _loose_coverage(label: str, device: Target) -> Coverage:
    try:
        built = Architecture.parse(label)
    except TargetError:
        return Coverage.EXACT  # Of unknown architecture: it may be the one.
    assert device.capability is not None  # noqa: S101 - devices_of has seen to it
    if label == built.ptx_name:
        return Coverage.JIT if runs_ptx(built, device.capability) else Coverage.NONE
    if not runs_cubin(built, device.capability):
        return Coverage.NONE
    return Coverage.EXACT if built.capability == device.capability else Coverage.COMPATIBLE


def _check_target(library: InspectedLibrary, device: Target, strict: bool) -> TargetCheck:
    assert device.capability is not None  # noqa: S101 - devices_of has seen to it
    counts: Counter[Coverage] = Counter()
    gaps: list[Gap] = []
    for section in library.code.sections:
        for group in section.groups:
            if not group.has_code:
                continue
            coverage = choose(group.entries, device.capability).coverage
            places = group.places
            if coverage is Coverage.NONE:
                places = tuple(place for place in places if place.number not in library.code.linked)
                if places:
                    gaps.append(Gap(section.name, group.labels, places))
            counts[coverage] += len(places)
    counts = +counts
    verdict = _verdict(counts, library.code.sections)
    covered = verdict is not Verdict.NONE and not (strict and gaps)
    return TargetCheck(
        target=device.name,
        verdict=verdict,
        counts={coverage: counts[coverage] for coverage in Coverage if counts[coverage]},
        gaps=tuple(gaps),
        covered=covered,
    )


def _verdict(counts: Counter[Coverage], sections: tuple[CodeSection, ...]) -> Verdict:
    if len(counts) == 1:
        return Verdict(next(iter(counts)).value)
    if counts:
        return Verdict.MIXED
    groups = [group for section in sections for group in section.groups]
    known = any(group.has_code for group in groups)
    return Verdict.UNKNOWN if any(group.entries for group in groups) and not known else Verdict.NONE


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in patterns)


def _stamp_notices(inspection: Inspection, devices: Iterable[Target]) -> Iterator[str]:
    """Say where an artifact was slimmed for other targets: what else they used may be gone."""
    for stamp in inspection.stamps:
        try:
            kept = {target.capability for target in parse_targets(stamp.targets)}
        except TargetError:
            continue  # Written by a later version, with a word that this one does not know.
        asked = [device.name for device in devices if device.capability not in kept]
        if asked:
            yield (
                f"{stamp.member} says that this was slimmed for {', '.join(stamp.targets)}: "
                f"code that only {', '.join(asked)} used may be gone without a trace"
            )
