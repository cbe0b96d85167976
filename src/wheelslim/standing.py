"""Why a device runs an entry of a container, or does not: the driver's rule in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.architecture import Suffix
from wheelslim.fatbin.layout import EntryKind
from wheelslim.selection import Coverage, choose, runs_cubin, runs_ptx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.architecture import Architecture, ComputeCapability
    from wheelslim.fatbin.model import Entry
    from wheelslim.selection import Choice

_ORDER = {EntryKind.CUBIN: 0, EntryKind.CONCATENATED: 0, EntryKind.CUBIN_VARIANT: 1, EntryKind.PTX: 2}
_CLASSES = ("a cubin", "a cubin of kind 0x10", "PTX")


@dataclass(frozen=True, slots=True)
class Standing:
    """How one entry stands to one device: whether it could run there, whether it is taken, and why."""

    runs: bool
    taken: bool
    why: str


def standings(entries: Sequence[Entry], device: ComputeCapability) -> tuple[Standing, ...]:
    """Explain every entry of a container for ``device``, in order."""
    choice = choose(entries, device)
    return tuple(_standing(index, entry, entries, device, choice) for index, entry in enumerate(entries))


def _standing(
    index: int, entry: Entry, entries: Sequence[Entry], device: ComputeCapability, choice: Choice
) -> Standing:
    if not entry.is_known:
        return Standing(False, False, "of a kind that the rule does not speak of")
    built = [sub.architecture for sub in entry.subs] if entry.subs else [entry.architecture]
    able = [one for one in built if (runs_ptx if entry.is_ptx else runs_cubin)(one, device)]
    if not able:
        reasons = dict.fromkeys(_unable(one, device, ptx=entry.is_ptx) for one in built)
        return Standing(False, False, "; ".join(reasons))
    if index in choice.entries:
        return Standing(True, True, _taken(entries, device, choice))
    chosen = entries[choice.entries[0]]
    if _ORDER[EntryKind(chosen.kind)] < _ORDER[EntryKind(entry.kind)]:
        first, second = (_CLASSES[_ORDER[EntryKind(one.kind)]] for one in (chosen, entry))
        return Standing(True, False, f"{first} goes before {second}")
    nearest = choice.architecture
    name = "" if nearest is None else nearest.ptx_name if entry.is_ptx else nearest.name
    return Standing(True, False, f"{name} is nearer")


def _unable(built: Architecture, device: ComputeCapability, *, ptx: bool) -> str:
    capability = built.capability
    if built.suffix is Suffix.ARCH:
        return f"runs on {capability} alone"
    if built.suffix is Suffix.FAMILY and (
        capability.major != device.major or capability.minor <= device.minor
    ):
        return f"runs on the family of {capability} alone"
    if ptx:
        return f"PTX for {capability} and later"
    if capability.major != device.major:
        return f"runs on {capability.major}.x alone"
    return f"runs from {capability} on"


def _taken(entries: Sequence[Entry], device: ComputeCapability, choice: Choice) -> str:
    ties = len(choice.entries) - 1
    tie = f"; ties with {ties} more of that number" if ties else ""
    if choice.coverage is Coverage.EXACT:
        return f"taken: built for {device}{tie}"
    if choice.coverage is Coverage.JIT:
        held = any(_ORDER.get(entry.kind, 2) < 2 for entry in entries)  # type: ignore[call-overload]
        none = "no cubin runs here" if held else "there is no cubin"
        return f"taken: {none}, and this is the nearest PTX{tie}"
    return f"taken: the nearest lower number of {device.major}.x{tie}"
