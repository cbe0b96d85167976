"""What became of one library, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wheelslim.fatbin.model import Entry, SubEntry
    from wheelslim.library import Library
    from wheelslim.plan import ContainerPlan, Planner
    from wheelslim.selection import Choice, Coverage
    from wheelslim.targets import Target


class Method(Enum):
    """How a library was made smaller."""

    CUT = "cut"
    """Containers compacted, freed pages cut out of the file."""
    IN_PLACE = "in place"
    """Each container compacted where it lies, the rest zero: smaller only once compressed."""
    NONE = "unchanged"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The size of the new file, how it came about, remarks, and the size of what was stripped; in bytes."""

    size: int
    method: Method
    notes: tuple[str, ...] = ()
    stripped: int = 0
    embedded: EmbeddedAccount | None = None
    served_elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """Device code of one architecture: how many entries, and their bytes (header + padded payload)."""

    entries: int
    size: int


@dataclass(frozen=True, slots=True)
class TargetCoverage:
    """How the containers of a library serve one target: coverage → number of containers.

    ``lost`` counts those that serve it otherwise than before; not those that a veto emptied.
    """

    target: str
    before: dict[Coverage, int]
    after: dict[Coverage, int]
    lost: int


@dataclass(frozen=True, slots=True)
class SectionAccount:
    """Device code of one section before and after, by label."""

    name: str
    before: dict[str, Share]
    after: dict[str, Share]


@dataclass(frozen=True)
class EmbeddedAccount:
    """Containers outside the device sections: their number, how many became zeros, shares by label."""

    containers: int
    emptied: int
    before: dict[str, Share]
    after: dict[str, Share]


@dataclass(frozen=True)
class LibraryAccount:
    """What became of one library. Sizes in bytes; shares by label (``sm_90a``, ``compute_120``).

    ``stripped`` is the size of the sections that went since nothing loads them. ``sections`` split
    ``before`` and ``after`` up. ``embedded`` is None unless containers outside the device sections
    were asked for; the other fields are without them. ``served_elsewhere`` names the targets that only
    containers outside the device sections serve.
    """

    size_before: int
    size_after: int
    method: Method
    containers: int
    before: dict[str, Share]
    after: dict[str, Share]
    coverage: tuple[TargetCoverage, ...]
    notes: tuple[str, ...] = ()
    stripped: int = 0
    embedded: EmbeddedAccount | None = None
    sections: tuple[SectionAccount, ...] = ()
    served_elsewhere: tuple[str, ...] = ()


def account_of(
    library: Library, plans: Sequence[ContainerPlan], planner: Planner, outcome: Outcome
) -> LibraryAccount:
    """Count what ``plans``, one for each container, do to the library."""
    devices = planner.request.devices
    # Containers of one kind share a plan, so that few are different.
    kinds = _by_identity(plans)
    before, after = _Tally(), _Tally()
    sections = []
    first = 0
    for part in library.device:
        old, new = _Tally(), _Tally()
        containers = part.tiling.containers
        for container, plan in zip(containers, plans[first : first + len(containers)], strict=True):
            old.add(container.entries)
            new.add([container.entries[index] for index in plan.kept])
        first += len(containers)
        sections.append(SectionAccount(part.section.name, old.shares(), new.shares()))
        before.include(old)
        after.include(new)
    return LibraryAccount(
        size_before=library.elf.size,
        size_after=outcome.size,
        method=outcome.method,
        containers=len(plans),
        before=before.shares(),
        after=after.shares(),
        coverage=tuple(
            TargetCoverage(
                target=device.name,
                before=_counted((plan.before[index], count) for plan, count in kinds),
                after=_counted((plan.after[index], count) for plan, count in kinds),
                lost=sum(count for plan, count in kinds if index in plan.lost and not plan.is_vetoed),
            )
            for index, device in enumerate(devices)
        ),
        notes=(*library.notes, *outcome.notes),
        stripped=outcome.stripped,
        embedded=outcome.embedded,
        sections=tuple(sections),
        served_elsewhere=outcome.served_elsewhere,
    )


def account_of_nothing(size: int, devices: Iterable[Target]) -> LibraryAccount:
    """Account for a library of ``size`` bytes without device code."""
    coverage = tuple(TargetCoverage(device.name, {}, {}, 0) for device in devices)
    return LibraryAccount(size, size, Method.NONE, 0, {}, {}, coverage)


def shares(entries: Iterable[Entry]) -> dict[str, Share]:
    """Sum entries by label, sorted by label's architecture."""
    tally = _Tally()
    tally.add(entries)
    return tally.shares()


class _Tally:
    """Entries summed by what their label is made from; a library can hold half a million of them."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int, int, tuple[SubEntry, ...]], tuple[Entry, int, int]] = {}

    def add(self, entries: Iterable[Entry]) -> None:
        sums = self._sums
        for entry in entries:
            key = (entry.kind, entry.sm, entry.flags, entry.subs)
            one, count, size = sums.get(key) or (entry, 0, 0)
            sums[key] = (one, count + 1, size + entry.header_size + entry.padded_size)

    def include(self, other: _Tally) -> None:
        for key, (entry, more, bytes_more) in other._sums.items():
            one, count, size = self._sums.get(key) or (entry, 0, 0)
            self._sums[key] = (one, count + more, size + bytes_more)

    def shares(self) -> dict[str, Share]:
        found: dict[str, Share] = {}
        order: dict[str, tuple[int, str]] = {}
        for entry, count, size in self._sums.values():
            label = entry.label
            share = found.get(label) or Share(0, 0)
            found[label] = Share(share.entries + count, share.size + size)
            order[label] = (entry.sm, label)
        return {label: found[label] for label in sorted(found, key=order.__getitem__)}


def label_order(label: str) -> tuple[int, str]:
    """Sort labels by their SM number, then by name: ``sm_80``, ``sm_90``, ``sm_90a``, ``sm_100``."""
    digits = "".join(c for c in label.partition("_")[2] if c.isdigit())
    return (int(digits) if digits else 0, label)


def _by_identity(plans: Sequence[ContainerPlan]) -> list[tuple[ContainerPlan, int]]:
    objects = {id(plan): plan for plan in plans}
    return [(objects[identity], count) for identity, count in Counter(map(id, plans)).items()]


def _counted(choices: Iterable[tuple[Choice, int]]) -> dict[Coverage, int]:
    found: dict[Coverage, int] = {}
    for choice, count in choices:
        found[choice.coverage] = found.get(choice.coverage, 0) + count
    return found
