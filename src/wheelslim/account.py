"""What became of one library, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wheelslim.fatbin.model import Entry
    from wheelslim.library import Library
    from wheelslim.plan import ContainerPlan, Planner
    from wheelslim.selection import Choice, Coverage


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
    pairs = list(zip(library.containers, plans, strict=True))
    devices = planner.request.devices
    return LibraryAccount(
        size_before=library.elf.size,
        size_after=outcome.size,
        method=outcome.method,
        containers=len(pairs),
        before=shares(entry for container, _ in pairs for entry in container.entries),
        after=shares(container.entries[index] for container, plan in pairs for index in plan.kept),
        coverage=tuple(
            TargetCoverage(
                target=device.name,
                before=_counted(plan.before[index] for plan in plans),
                after=_counted(plan.after[index] for plan in plans),
                lost=sum(index in plan.lost for plan in plans if not plan.is_vetoed),
            )
            for index, device in enumerate(devices)
        ),
        notes=(*library.notes, *outcome.notes),
        stripped=outcome.stripped,
        embedded=outcome.embedded,
        sections=tuple(_section_accounts(library, plans)),
        served_elsewhere=outcome.served_elsewhere,
    )


def _section_accounts(library: Library, plans: Sequence[ContainerPlan]) -> Iterator[SectionAccount]:
    first = 0
    for part in library.device:
        containers = part.tiling.containers
        pairs = list(zip(containers, plans[first : first + len(containers)], strict=True))
        first += len(containers)
        yield SectionAccount(
            part.section.name,
            shares(entry for container, _ in pairs for entry in container.entries),
            shares(container.entries[index] for container, plan in pairs for index in plan.kept),
        )


def shares(entries: Iterable[Entry]) -> dict[str, Share]:
    """Sum entries by label, sorted by label's architecture."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    order: dict[str, tuple[int, str]] = {}
    for entry in entries:
        label = entry.label
        sizes[label] += entry.size
        counts[label] += 1
        order[label] = (entry.sm, label)
    return {label: Share(counts[label], sizes[label]) for label in sorted(sizes, key=order.__getitem__)}


def label_order(label: str) -> tuple[int, str]:
    """Sort labels by their SM number, then by name: ``sm_80``, ``sm_90``, ``sm_90a``, ``sm_100``."""
    digits = "".join(c for c in label.partition("_")[2] if c.isdigit())
    return (int(digits) if digits else 0, label)


def _counted(choices: Iterable[Choice]) -> dict[Coverage, int]:
    return dict(Counter(choice.coverage for choice in choices))
