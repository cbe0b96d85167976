"""For one library and the targets: which entry each container runs, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from wheelslim.archive.opener import open_artifact
from wheelslim.contents import ContentKind, content_kind
from wheelslim.devices import targets_of
from wheelslim.errors import ElfFormatError, Place, UsageError, WheelslimError
from wheelslim.library import read_library
from wheelslim.plan import Planner, PtxPolicy, Request
from wheelslim.standing import Standing, standings
from wheelslim.words import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from wheelslim.archive.artifact import Member
    from wheelslim.devices import TargetsGiven
    from wheelslim.fatbin.model import Container, Entry
    from wheelslim.library import DeviceSection, Library
    from wheelslim.plan import ContainerPlan, Verdict
    from wheelslim.selection import Choice
    from wheelslim.source import Source

_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class ExplainedPlace:
    """A container: its number in the library, its address, those of its wrappers, its size in bytes.

    ``kernels`` are demangled names (those that match, where one was searched for), None where they
    were not asked for; ``fault`` says why they cannot be read.
    """

    number: int
    address: int
    wrappers: tuple[int, ...]
    size: int
    kernels: tuple[str, ...] | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class ExplainedEntry:
    """An entry: what it was built for, its size in bytes, what pruning does to it, and each device's view."""

    label: str
    size: int
    verdict: Verdict
    standings: tuple[Standing, ...]


@dataclass(frozen=True, slots=True)
class ExplainedGroup:
    """Containers of one section that hold the same entries, so that one explanation serves them all.

    Sizes of ``entries`` are those of the first; ``before`` and ``after`` hold one Choice per device.
    """

    section: str
    places: tuple[ExplainedPlace, ...]
    entries: tuple[ExplainedEntry, ...]
    before: tuple[Choice, ...]
    after: tuple[Choice, ...]


@dataclass(frozen=True)
class Explanation:
    """One library against the targets; ``devices`` are the names of those that are devices."""

    artifact: str
    library: str
    targets: tuple[str, ...]
    devices: tuple[str, ...]
    groups: tuple[ExplainedGroup, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """Which containers to explain: all, or one by number or wrapper address, or those with a kernel.

    ``kernel`` is a regular expression, searched for in the demangled and the mangled names; with
    ``name_kernels`` the kernels are named whatever was selected.
    """

    container: int | None = None
    wrapper: int | None = None
    kernel: str | None = None
    name_kernels: bool = False

    @property
    def is_all(self) -> bool:
        """Whether nothing was selected."""
        return self.container is None and self.wrapper is None and self.kernel is None


def explain(
    path: str | PathLike[str],
    targets: TargetsGiven,
    *,
    library: str | None = None,
    container: int | None = None,
    wrapper: int | None = None,
    kernel: str | None = None,
    name_kernels: bool = False,
    ptx: str = "auto",
    exact: bool = False,
) -> Explanation:
    """Explain for each container of a library which entry the targets run, before and after pruning.

    ``path`` is a library, or an artifact with one; ``library`` chooses among several by a glob.
    ``container`` (a number, counted from 0), ``wrapper`` (an address) or ``kernel`` (a regular
    expression) select containers. Kernels are named for what is selected, and with
    ``name_kernels``.

    Raises:
        UsageError: no library, or several, match; nothing matches the selection.
        WheelslimError: whatever else is wrong, with its place.
    """
    request = Request(targets_of(targets), value_of(PtxPolicy, ptx, "ptx"), exact)
    selection = Selection(container, wrapper, kernel, name_kernels)
    path = Path(path)
    found: Explanation | None = None
    seen: list[str] = []
    try:
        with open_artifact(path) as artifact:
            for member, source in artifact.walk(lambda member, head: _wanted(member, head, library)):
                if source is None or not _has_device_code(source):
                    continue
                seen.append(member.name)
                if len(seen) == 1:
                    found = _explain(source, request, selection, (str(path), member.name))
    except WheelslimError as error:
        raise error.at(artifact=str(path)) from error.__cause__
    if found is None or len(seen) > 1:
        none = "no library with device code " + (f"matches {library!r}" if library else "was found")
        raise UsageError(
            "several libraries hold device code" if seen else none,
            place=Place(artifact=str(path)),
            found=", ".join([*seen[:_MOST_NAMED], *(["…"] if seen[_MOST_NAMED:] else [])]) or None,
            hint="Choose one with --library" if seen else None,
        )
    return found


def _wanted(member: Member, head: bytes, library: str | None) -> bool:
    if content_kind(member.name, head) is not ContentKind.LIBRARY:
        return False
    name = member.name.rpartition("/")[2]
    return library is None or fnmatchcase(member.name, library) or fnmatchcase(name, library)


def _has_device_code(source: Source) -> bool:
    from wheelslim.device_code import read_device_code

    try:
        return bool(read_device_code(source).sections)
    except ElfFormatError:
        return False


def _explain(source: Source, request: Request, selection: Selection, names: tuple[str, str]) -> Explanation:
    library = read_library(source)
    groups = list(_groups(source, library, request, selection))
    if not groups and not selection.is_all:
        raise UsageError("no container matches", hint="inspect --by container -v lists them")
    return Explanation(
        artifact=names[0],
        library=names[1],
        targets=tuple(target.name for target in request.targets),
        devices=tuple(device.name for device in request.devices),
        groups=tuple(groups),
        notices=library.notes,
    )


@dataclass
class _Growing:
    """A group while containers are added."""

    section: str
    container: Container
    plan: ContainerPlan
    places: list[ExplainedPlace] = field(default_factory=list)


def _groups(
    source: Source, library: Library, request: Request, selection: Selection
) -> Iterator[ExplainedGroup]:
    planner = Planner(request)
    growing: dict[tuple[object, ...], _Growing] = {}
    number = 0
    wrappers: dict[int, list[int]] = {}
    for one in library.wrappers:
        wrappers.setdefault(one.target, []).append(one.address)
    for part in library.device:
        section = source.part(part.section.sh_offset, part.section.sh_size)
        for container in part.tiling.containers:
            plan = planner.plan(container)
            place = _place(part, container, number, tuple(wrappers.get(part.address(container), ())))
            number += 1
            chosen = _selected(section, container, plan, place, selection)
            if chosen is None:
                continue
            alike = tuple((e.kind, e.sm, e.flags, e.subs) for e in container.entries)
            key = (part.section.name, alike, place.number if not selection.is_all else None)
            growing.setdefault(key, _Growing(part.section.name, container, plan)).places.append(chosen)
    for group in growing.values():
        yield _finished(group, request)


def _place(
    part: DeviceSection, container: Container, number: int, wrappers: tuple[int, ...]
) -> ExplainedPlace:
    return ExplainedPlace(number, part.address(container), wrappers, container.size)


def _selected(
    section: Source, container: Container, plan: ContainerPlan, place: ExplainedPlace, selection: Selection
) -> ExplainedPlace | None:
    if selection.container is not None and selection.container != place.number:
        return None
    if selection.wrapper is not None and selection.wrapper not in place.wrappers:
        return None
    if selection.is_all and not selection.name_kernels:
        return place
    kernels, fault = _kernels(section, container, plan)
    if selection.kernel is not None:
        pattern = _pattern(selection.kernel)
        kernels = {mangled: name for mangled, name in kernels.items() if pattern.search(f"{name}\n{mangled}")}
        if not kernels:
            return None
    return ExplainedPlace(
        place.number, place.address, place.wrappers, place.size, tuple(kernels.values()), fault
    )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError("the kernel is no regular expression", found=f"{text!r}: {error}") from error


def _kernels(section: Source, container: Container, plan: ContainerPlan) -> tuple[dict[str, str], str]:
    """Name the kernels in what the devices run, else in the first entry: mangled → demangled; and a fault."""
    from wheelslim.kernels.names import entry_kernels
    from wheelslim.kernels.spelling import demangle

    chosen = dict.fromkeys(
        (index, choice.architecture.number)
        for choice in plan.before
        if choice.architecture is not None
        for index in choice.entries
    )
    entries = container.entries
    tries = list(chosen) or [(i, _number(entry)) for i, entry in enumerate(entries) if entry.is_known][:1]
    names: dict[str, None] = {}
    fault = ""
    for index, number in tries:
        try:
            names.update(dict.fromkeys(entry_kernels(section, entries[index], number)))
        except WheelslimError as error:
            fault = str(error)
    return dict(zip(names, demangle(list(names)), strict=True)), fault


def _number(entry: Entry) -> int:
    return entry.subs[0].sm if entry.subs else entry.sm


def _finished(group: _Growing, request: Request) -> ExplainedGroup:
    entries = group.container.entries
    views = [standings(entries, d.capability) for d in request.devices if d.capability is not None]
    return ExplainedGroup(
        section=group.section,
        places=tuple(group.places),
        entries=tuple(
            ExplainedEntry(entry.label, entry.size, verdict, tuple(view[index] for view in views))
            for index, (entry, verdict) in enumerate(zip(entries, group.plan.verdicts, strict=True))
        ),
        before=group.plan.before,
        after=group.plan.after,
    )


def containers_of(groups: Iterable[ExplainedGroup]) -> int:
    """Count the containers of groups."""
    return sum(len(group.places) for group in groups)
