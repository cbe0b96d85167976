"""Targets and containers in, kept and dropped entries out, each with its reason. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.fatbin.layout import EntryKind
from wheelslim.selection import NOTHING, Choice, Coverage, also_safe, choose, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.architecture import Architecture
    from wheelslim.fatbin.model import Container, Entry
    from wheelslim.targets import Target


class PtxPolicy(Enum):
    """What happens to PTX (``--ptx``)."""

    AUTO = "auto"
    """Kept only where a target would JIT from it, or asked for it (``+PTX``)."""
    ALL = "all"
    NONE = "none"


class LtoPolicy(Enum):
    """What happens to LTO-IR (``--lto``).

    No driver chooses it: a library hands it to nvJitLink at run time, as cuFFT does for callbacks.
    """

    ALL = "all"
    NONE = "none"


class Reason(Enum):
    """Why an entry stays or goes."""

    EXACT = "exact for"
    COMPATIBLE = "compatible with"
    JIT = "JIT for"
    SAFE = "kept beside the nearest for"
    FORWARD = "PTX asked for by"
    ALL_PTX = "all PTX is kept"
    BY_NAME = "named by"
    UNKNOWN_KIND = "kept: unknown kind"
    LTO = "kept: LTO-IR, which a library may link at run time"
    INDEXED = "kept: the container has an index"
    NOT_NEEDED = "not needed"
    VETOED = "only dropped kernels"

    @property
    def keeps(self) -> bool:
        """Whether the entry stays."""
        return self not in (Reason.NOT_NEEDED, Reason.VETOED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reason for one entry, with the targets that it speaks of."""

    reason: Reason
    targets: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """For people: ``exact for sm_86``, ``not needed``."""
        return " ".join((self.reason.value, ", ".join(self.targets))).strip()


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for."""

    targets: tuple[Target, ...]
    ptx: PtxPolicy = PtxPolicy.AUTO
    exact: bool = False
    lto: LtoPolicy = LtoPolicy.ALL

    @property
    def devices(self) -> tuple[Target, ...]:
        """The targets that are devices; ``compute_90`` asks for PTX and is none."""
        return tuple(target for target in self.targets if target.capability is not None)


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """What becomes of one container.

    ``kept`` are indexes into the container's entries; ``before`` and ``after`` hold one Choice per
    device of the request, both in terms of the original's indexes.
    """

    kept: tuple[int, ...]
    verdicts: tuple[Verdict, ...]
    before: tuple[Choice, ...]
    after: tuple[Choice, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """Indexes of the devices that no longer run what they ran before."""
        return tuple(
            i for i, (old, new) in enumerate(zip(self.before, self.after, strict=True)) if old != new
        )

    @property
    def is_vetoed(self) -> bool:
        """Whether the container was emptied on purpose, for the kernels in it."""
        return any(verdict.reason is Reason.VETOED for verdict in self.verdicts)

    def vetoed(self) -> ContainerPlan:
        """Empty the container: the user wants none of its kernels."""
        return ContainerPlan(
            (), (Verdict(Reason.VETOED),) * len(self.verdicts), self.before, (NOTHING,) * len(self.after)
        )


@dataclass
class Planner:
    """Plans containers for one request; equal sets of entries are planned once."""

    request: Request
    _known: dict[tuple[tuple[int, int, int, tuple[object, ...]], ...], ContainerPlan] = field(
        default_factory=dict, repr=False
    )

    def plan(self, container: Container) -> ContainerPlan:
        """Decide for every entry of ``container``."""
        signature = tuple((e.kind, e.sm, e.flags, e.subs) for e in container.entries)
        known = self._known.get(signature)
        if known is None:
            known = self._known[signature] = plan_entries(container.entries, self.request)
        return known


def plan_entries(entries: Sequence[Entry], request: Request) -> ContainerPlan:
    """Decide for every entry; the rule of docs/how-it-works.md, "What stays"."""
    before = tuple(choose(entries, device.capability) for device in request.devices if device.capability)
    if any(entry.kind == EntryKind.INDEX for entry in entries):
        verdicts = [Verdict(Reason.INDEXED)] * len(entries)
    else:
        verdicts = [Verdict(_first_reason(entry, request)) for entry in entries]
        if request.exact:
            _keep_by_name(entries, request, verdicts)
        else:
            _keep_by_rule(entries, request, before, verdicts)
        _apply_ptx(entries, request, verdicts)
    kept = tuple(index for index, verdict in enumerate(verdicts) if verdict.reason.keeps)
    after = tuple(_after(entries, kept, d) for d in request.devices)
    return ContainerPlan(kept, tuple(verdicts), before, after)


def _first_reason(entry: Entry, request: Request) -> Reason:
    """Why an entry stays or goes before any target is asked."""
    if entry.kind == EntryKind.LTO_IR:
        return Reason.NOT_NEEDED if request.lto is LtoPolicy.NONE else Reason.LTO
    return Reason.NOT_NEEDED if entry.is_known else Reason.UNKNOWN_KIND


def _after(entries: Sequence[Entry], kept: tuple[int, ...], device: Target) -> Choice:
    if device.capability is None:
        return NOTHING
    choice = choose([entries[index] for index in kept], device.capability)
    return Choice(choice.coverage, tuple(kept[index] for index in choice.entries), choice.architecture)


def _keep_by_rule(
    entries: Sequence[Entry], request: Request, before: tuple[Choice, ...], verdicts: list[Verdict]
) -> None:
    reasons = {
        Coverage.EXACT: Reason.EXACT,
        Coverage.COMPATIBLE: Reason.COMPATIBLE,
        Coverage.JIT: Reason.JIT,
    }
    for target, choice in zip(request.devices, before, strict=True):
        for index in choice.entries:
            _keep(verdicts, index, reasons[choice.coverage], target.name)
        if target.capability is not None:
            for index in also_safe(entries, target.capability):
                _keep(verdicts, index, Reason.SAFE, target.name)
    for target in request.targets:
        for index in _wanted_ptx(entries, target):
            _keep(verdicts, index, Reason.FORWARD, target.name)


def _wanted_ptx(entries: Sequence[Entry], target: Target) -> tuple[int, ...]:
    """PTX that the words ask for: ``compute_90`` that one, ``8.6+PTX`` the best for what comes after 8.6."""
    if target.only_ptx is not None:
        wanted = target.only_ptx
        return tuple(i for i, e in enumerate(entries) if e.is_ptx and e.architecture == wanted)
    if not target.keep_ptx or target.capability is None:
        return ()
    number = target.capability.number
    best = nearest(entries, (EntryKind.PTX,), lambda a: not a.suffix.value and a.number <= number)
    if best is None:
        above = [e.architecture for e in entries if e.is_ptx and not e.architecture.suffix.value]
        if not above:
            return ()
        lowest: Architecture = min(above)
        return tuple(i for i, e in enumerate(entries) if e.is_ptx and e.architecture == lowest)
    return best[1]


def _keep_by_name(entries: Sequence[Entry], request: Request, verdicts: list[Verdict]) -> None:
    for target in request.targets:
        for index, entry in enumerate(entries):
            if not entry.is_known:
                continue
            built = [s.architecture for s in entry.subs] if entry.subs else [entry.architecture]
            wanted = target.only_ptx if entry.is_ptx else None
            if target.capability is not None and (target.keep_ptx or not entry.is_ptx):
                wanted = target.architecture
            if wanted in built:
                _keep(verdicts, index, Reason.BY_NAME, target.name)


def _apply_ptx(entries: Sequence[Entry], request: Request, verdicts: list[Verdict]) -> None:
    for index, entry in enumerate(entries):
        if not entry.is_ptx:
            continue
        if request.ptx is PtxPolicy.NONE:
            verdicts[index] = Verdict(Reason.NOT_NEEDED)
        elif request.ptx is PtxPolicy.ALL and not verdicts[index].reason.keeps:
            verdicts[index] = Verdict(Reason.ALL_PTX)


def _keep(verdicts: list[Verdict], index: int, reason: Reason, target: str) -> None:
    old = verdicts[index]
    if not old.reason.keeps:
        verdicts[index] = Verdict(reason, (target,))
    elif old.reason is reason and target not in old.targets:
        verdicts[index] = Verdict(reason, (*old.targets, target))
