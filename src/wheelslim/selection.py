"""The driver's rule: which entry of a container a device runs. Pure.

Sources: NVIDIA's compatibility guides for what can run at all; for precedence, measurements on a GPU
published as ``bechirBOUALI/cuda-fatbin-precedence`` (docs/how-it-works.md repeats the rule).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.architecture import Architecture, ComputeCapability, Suffix
from wheelslim.fatbin.layout import EntryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wheelslim.fatbin.model import Entry

FAMILIES = (frozenset({100, 103}), frozenset({101}), frozenset({110}), frozenset({120, 121}))
"""Devices that share ``f`` code (CUDA programming guide, family-specific architectures)."""

TEGRA = frozenset({53, 62, 72, 87, 88, 101, 110})
"""SM numbers of integrated devices, for which NVIDIA promises no compatibility with desktop cubins."""

RENAMED = {101: 110, 110: 101}
"""Thor was sm_101 until CUDA 12.9 and is sm_110 since CUDA 13.0; a device may answer to either."""


class Coverage(Enum):
    """How a container serves a device."""

    EXACT = "exact"
    """A cubin of the device's own number."""
    COMPATIBLE = "compatible"
    """A cubin of a lower minor of the same major."""
    JIT = "JIT"
    """PTX, compiled by the driver when it is loaded."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a device does with a container.

    ``entries`` are the indexes of all entries that the driver's first three rules could choose: one,
    or several that tie.
    """

    coverage: Coverage
    entries: tuple[int, ...]
    architecture: Architecture | None

    @property
    def text(self) -> str:
        """For people: ``exact``, ``compatible with sm_80``, ``JIT from compute_90``, ``none``."""
        if self.architecture is None or self.coverage in (Coverage.NONE, Coverage.EXACT):
            return self.coverage.value
        if self.coverage is Coverage.JIT:
            return f"JIT from {self.architecture.ptx_name}"
        return f"compatible with {self.architecture.name}"


NOTHING = Choice(Coverage.NONE, (), None)


def runs_cubin(architecture: Architecture, device: ComputeCapability) -> bool:
    """Whether a cubin built for ``architecture`` runs on ``device`` (rule 1)."""
    built = architecture.capability
    if architecture.suffix is Suffix.ARCH:
        return built == device
    if built.major != device.major or built.minor > device.minor:
        return False
    return architecture.suffix is Suffix.NONE or _same_family(architecture.number, device.number)


def runs_ptx(architecture: Architecture, device: ComputeCapability) -> bool:
    """Whether the driver can compile PTX of ``architecture`` for ``device`` (rule 1)."""
    if architecture.suffix is Suffix.NONE:
        return architecture.number <= device.number
    return runs_cubin(architecture, device)


def _same_family(built: int, device: int) -> bool:
    for family in FAMILIES:
        if built in family:
            return device in family
    return True  # A family that is not in the table yet: the same major has to do, which keeps more.


def choose(entries: Sequence[Entry], device: ComputeCapability) -> Choice:
    """Apply the driver's rule: cubins before their variants before PTX, then the nearest number."""
    for kinds, coverage_of in (
        ((EntryKind.CUBIN, EntryKind.CONCATENATED), _cubin_coverage),
        ((EntryKind.CUBIN_VARIANT,), _cubin_coverage),
        ((EntryKind.PTX,), lambda *_: Coverage.JIT),
    ):
        runs = runs_ptx if kinds == (EntryKind.PTX,) else runs_cubin
        found = nearest(entries, kinds, lambda built, runs=runs: runs(built, device))  # type: ignore[misc]
        if found:
            best, indexes = found
            return Choice(coverage_of(best, device), indexes, best)
    return NOTHING


def _cubin_coverage(architecture: Architecture, device: ComputeCapability) -> Coverage:
    return Coverage.EXACT if architecture.number == device.number else Coverage.COMPATIBLE


def nearest(
    entries: Sequence[Entry], kinds: Iterable[int], runs: Callable[[Architecture], bool]
) -> tuple[Architecture, tuple[int, ...]] | None:
    """Return the highest architecture among ``kinds`` that ``runs``, and the indexes that share its number.

    Architectures that differ only in the suffix tie: the rule speaks of the number.
    """
    wanted = frozenset(kinds)
    best: Architecture | None = None
    indexes: list[int] = []
    for index, entry in enumerate(entries):
        if entry.kind not in wanted:
            continue
        for built in _built_for(entry):
            if not runs(built):
                continue
            if best is None or built.number > best.number:
                best, indexes = built, [index]
            elif built.number == best.number and indexes[-1] != index:
                indexes.append(index)
    return None if best is None else (best, tuple(indexes))


def _built_for(entry: Entry) -> tuple[Architecture, ...]:
    if entry.kind == EntryKind.CONCATENATED:
        return tuple(sub.architecture for sub in entry.subs)
    return (entry.architecture,)


def also_safe(entries: Sequence[Entry], device: ComputeCapability) -> tuple[int, ...]:
    """Return entries to keep beside ``choose``'s where NVIDIA's promise and the rule part ways.

    An integrated device keeps its nearest lower cubin, its best PTX and code under its other name;
    any other device for which an integrated device's cubin would be the nearest keeps the nearest
    ordinary one too.
    """
    cubins = (EntryKind.CUBIN, EntryKind.CONCATENATED)
    found = []
    if device.number in TEGRA:
        lower = ComputeCapability(device.major, device.minor)
        found.append(nearest(entries, cubins, lambda a: a.number < device.number and runs_cubin(a, lower)))
        found.append(nearest(entries, (EntryKind.PTX,), lambda a: runs_ptx(a, device)))
        other = RENAMED.get(device.number)
        if other is not None:
            found.append(nearest(entries, cubins, lambda a: a.number == other))
    else:
        choice = choose(entries, device)
        chosen = choice.architecture
        if chosen is not None and chosen.number in TEGRA and choice.coverage is Coverage.COMPATIBLE:
            found.append(nearest(entries, cubins, lambda a: a.number not in TEGRA and runs_cubin(a, device)))
            found.append(nearest(entries, (EntryKind.PTX,), lambda a: runs_ptx(a, device)))
    return tuple(sorted({index for item in found if item for index in item[1]}))
