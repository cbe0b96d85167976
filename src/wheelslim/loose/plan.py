"""Loose device code of an artifact: found, and decided on."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from wheelslim.architecture import Architecture
from wheelslim.archive.artifact import ArtifactKind, Member, MemberType
from wheelslim.elf.layout import DynamicTag
from wheelslim.elf.reader import is_elf64, read_dynamic, read_elf
from wheelslim.elf.strings import dynamic_strings
from wheelslim.errors import ElfFormatError, FatbinFormatError, WheelslimError
from wheelslim.fatbin.reader import read_tiling
from wheelslim.library import read_library
from wheelslim.loose.checksums import is_checksum_list
from wheelslim.loose.decision import LooseDecision, decide
from wheelslim.loose.image import LooseImage, LooseKind, cubin_number, is_cubin, is_fatbin, ptx_target
from wheelslim.loose.naming import named_architecture, names_other_than, stem
from wheelslim.selection import Coverage
from wheelslim.units import count_text, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wheelslim.archive.artifact import Artifact
    from wheelslim.fatbin.model import Container
    from wheelslim.plan import Planner
    from wheelslim.source import Source

_SITE = "site-packages/"
_PTX = ".ptx"
_SUFFIXES = (".cubin", ".fatbin", _PTX)
_CONDA_PATHS = "info/paths.json"
_PTX_HEAD = 1 << 16
_LIBRARY = ".so"


@dataclass(frozen=True)
class LoosePlan:
    """``dropped`` maps a member to the reason, ``kept`` to what it is kept for.

    ``fatbins`` stay with fewer entries (``loose.fatbin``). ``served`` names the device targets that
    loose code runs on; files in ``unknown`` are not understood, and might run on others.
    ``labels`` count the files by architecture. ``lists`` are files of checksums.
    """

    dropped: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    fatbins: frozenset[str] = frozenset()
    served: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)
    lists: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is loose device code."""
        return bool(self.dropped or self.kept)

    @property
    def names(self) -> frozenset[str]:
        """The dropped members, by the name in the artifact and by the path below site-packages."""
        return frozenset(self.dropped) | {name.rpartition(_SITE)[2] for name in self.dropped}

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for people: how many files go, and which stay for want of knowledge."""
        lines = []
        if self.dropped:
            of = count_text(len(self.dropped) + len(self.kept), "file")
            size = size_text(self.dropped_size)
            lines.append(f"loose device code: dropped {len(self.dropped):,} of {of}, {size}")
        if self.unknown:
            example = self.unknown[0]
            why = self.kept[example]
            files = count_text(len(self.unknown), "loose file")
            lines.append(f"kept, since not understood: {files}, such as {example}: {why}")
        if self.dropped and self.lists:
            lists = count_text(len(self.lists), "list")
            lines.append(f"left as before: {lists} of checksums, such as {self.lists[0]}")
        return tuple(lines)

    @property
    def dropped_size(self) -> int:
        """Bytes of the dropped members."""
        return sum(self.sizes[name] for name in self.dropped)


@dataclass
class _Found:
    """What two passes over the members collect."""

    images: list[LooseImage] = field(default_factory=list)
    fatbins: dict[str, bool] = field(default_factory=dict)
    """Fatbins that are understood; whether a target runs something in them."""
    served: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    labels: Counter[str] = field(default_factory=Counter)
    lists: list[str] = field(default_factory=list)


def plan_loose(artifact: Artifact, planner: Planner) -> LoosePlan:
    """Decide on every loose file; reads 64 bytes of each cubin, headers of the rest.

    Libraries count only where several have names that differ in the architecture alone; one that a
    target runs code of, or that another library needs, stays.

    Raises:
        ArchiveError: the artifact does not read.
    """
    if artifact.kind is ArtifactKind.FILE:
        return _plan_file(artifact, planner)
    if not _may_hold_some(artifact):
        return LoosePlan()
    found = _Found()
    members = []
    for member, source in artifact.walk(_collector(found)):
        if member.type is MemberType.FILE:
            members.append(member)
        if source is not None:
            _read(member, source, found, planner)
    candidates = _library_variants(members)
    if candidates:
        for member, source in artifact.walk(lambda member, head: is_elf64(head) and not is_cubin(head)):
            if source is not None:
                _read_library(member, source, found, candidates, planner)
    images = [image for image in found.images if image.name.rpartition("/")[2] not in found.needed]
    decision = decide(images, planner.request)
    return _settled(decision, found, {member.name: member.size for member in members})


def _plan_file(artifact: Artifact, planner: Planner) -> LoosePlan:
    """Decide on one file: a fatbin may lose entries; nobody asks for a file and wants it gone."""
    found = _Found()
    sizes = {}
    for member, source in artifact.walk(lambda _, head: is_fatbin(head)):
        if source is not None:
            sizes[member.name] = member.size
            _read(member, source, found, planner)
    plan = _settled(decide(found.images, planner.request), found, sizes)
    return replace(plan, dropped={}, kept=dict.fromkeys(sizes, "asked for"))


def _may_hold_some(artifact: Artifact) -> bool:
    """Look at the names first where a pass over the members means to decompress all of them."""
    if artifact.kind not in (ArtifactKind.CONDA, ArtifactKind.TAR_BZ2):
        return True
    try:
        paths = json.loads(artifact.read(_CONDA_PATHS)).get("paths", [])
        names = [str(entry.get("_path")) for entry in paths]
    except (WheelslimError, ValueError, AttributeError):
        return True
    members = [Member(name, 0) for name in names]
    return any(name.endswith(_SUFFIXES) for name in names) or bool(_library_variants(members))


def _collector(found: _Found) -> Callable[[Member, bytes], bool]:
    """Look at the head of each member; those to be read further are asked for."""

    def wants(member: Member, head: bytes) -> bool:
        if member.type is not MemberType.FILE:
            return False
        if is_checksum_list(member.name):
            found.lists.append(member.name)
        if is_cubin(head):
            found.images.append(_cubin(member, head))
            return False
        return is_fatbin(head) or member.name.endswith(_PTX)

    return wants


def _cubin(member: Member, head: bytes) -> LooseImage:
    number = cubin_number(head)
    if number is None:
        why = "a cubin of unknown ABI version"
        return LooseImage(member.name, member.size, LooseKind.CUBIN, None, why)
    if names_other_than(member.name, number):
        why = f"named for another architecture than sm_{number}, which it was built for"
        return LooseImage(member.name, member.size, LooseKind.CUBIN, None, why)
    architecture = named_architecture(member.name, number) or Architecture(number)
    return LooseImage(member.name, member.size, LooseKind.CUBIN, architecture)


def _read(member: Member, source: Source, found: _Found, planner: Planner) -> None:
    if member.name.endswith(_PTX):
        word = ptx_target(source.read(0, min(source.size, _PTX_HEAD)))
        architecture = Architecture.parse(word) if word else None
        why = "" if word else "PTX without a .target"
        found.images.append(LooseImage(member.name, member.size, LooseKind.PTX, architecture, why))
        return
    try:
        found.fatbins[member.name] = _serves(read_tiling(source, 0).containers, found, planner)
    except FatbinFormatError as error:
        found.images.append(LooseImage(member.name, member.size, LooseKind.FATBIN, None, str(error)))


def _read_library(
    member: Member, source: Source, found: _Found, candidates: frozenset[str], planner: Planner
) -> None:
    try:
        elf = read_elf(source)
        found.needed.update(dynamic_strings(source, elf, read_dynamic(source, elf), DynamicTag.NEEDED))
        if member.name in candidates and not _serves(read_library(source).containers, found, planner):
            architecture = named_architecture(member.name)
            found.images.append(LooseImage(member.name, member.size, LooseKind.LIBRARY, architecture))
    except ElfFormatError:
        return


def _serves(containers: Iterable[Container], found: _Found, planner: Planner) -> bool:
    """Whether the plan keeps something of the containers; notes which targets they serve."""
    keeps = False
    for container in containers:
        plan = planner.plan(container)
        keeps = keeps or bool(plan.kept)
        found.labels.update(entry.label for entry in container.entries)
        for device, choice in zip(planner.request.devices, plan.before, strict=True):
            if choice.coverage is not Coverage.NONE:
                found.served.add(device.name)
    return keeps


def _library_variants(members: Iterable[Member]) -> frozenset[str]:
    """Return shared libraries whose file names differ from another's in the architecture alone."""
    groups: dict[str, set[tuple[Architecture, str]]] = defaultdict(set)
    for member in members:
        directory, _, file_name = member.name.rpartition("/")
        architecture = named_architecture(file_name) if _LIBRARY in file_name else None
        if architecture is not None:
            key = f"{directory}/{stem(file_name, architecture.number)}"
            groups[key].add((architecture, member.name))
    return frozenset(
        name
        for variants in groups.values()
        if len({architecture.number for architecture, _ in variants}) > 1
        for _, name in variants
    )


def _settled(decision: LooseDecision, found: _Found, sizes: dict[str, int]) -> LoosePlan:
    dropped, kept = dict(decision.dropped), dict(decision.kept)
    for name, keeps in found.fatbins.items():
        (kept if keeps else dropped)[name] = "holds what targets run" if keeps else "no target runs it"
    labels = Counter(found.labels)
    for image in found.images:
        if image.architecture is not None and image.kind is not LooseKind.LIBRARY:
            labels[
                image.architecture.ptx_name if image.kind is LooseKind.PTX else image.architecture.name
            ] += 1
    return LoosePlan(
        dropped=dropped,
        kept=kept,
        sizes={name: sizes[name] for name in (*dropped, *kept)},
        fatbins=frozenset(name for name, keeps in found.fatbins.items() if keeps),
        served=frozenset(found.served | decision.served),
        unknown=decision.unknown,
        labels=dict(sorted(labels.items())),
        lists=tuple(found.lists),
    )
