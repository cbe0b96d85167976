"""What is in an artifact: device code by library, section and architecture, and the other weight."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from wheelslim.account import Share, label_order
from wheelslim.architecture import Architecture
from wheelslim.archive.artifact import ArtifactKind, MemberType
from wheelslim.archive.opener import open_artifact
from wheelslim.archive.tree import TreeArtifact
from wheelslim.contents import ContentKind, content_kind
from wheelslim.device_code import CodeSection, DeviceCode, read_device_code, read_loose_fatbin
from wheelslim.errors import ArtifactError, ElfFormatError, FatbinFormatError, Place, WheelslimError
from wheelslim.loose.image import LooseImage, LooseKind, cubin_number, ptx_target
from wheelslim.loose.naming import named_architecture
from wheelslim.stamp import Stamp, is_stamp, read_stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from wheelslim.archive.artifact import Artifact, Member
    from wheelslim.device_code import ContainerGroup
    from wheelslim.source import Source

_LOOK_INSIDE = frozenset({ContentKind.LIBRARY, ContentKind.FATBIN, ContentKind.PTX})
_PTX_HEAD = 1 << 16

UNKNOWN_CUBIN = "cubin"
"""Label of a loose cubin whose architecture is not known."""

UNKNOWN_PTX = "compute_unknown"


@dataclass(frozen=True, slots=True)
class Content:
    """Members of one kind: how many, and their bytes unpacked."""

    files: int
    size: int


@dataclass(frozen=True)
class InspectedLibrary:
    """One ELF file for the host, or one loose fatbin.

    ``path`` is its POSIX path inside the artifact; ``size`` its bytes, ``stored`` those that it takes
    in the artifact's file (0 where members share one compressed stream).
    """

    path: str
    size: int
    stored: int
    code: DeviceCode

    @property
    def architectures(self) -> dict[str, Share]:
        """Entries and bytes by label (``sm_90a``, ``compute_120``), sorted by architecture."""
        return group_shares(self.code.groups)

    @property
    def host(self) -> int:
        """Bytes that are neither device code nor symbols nor debug information."""
        return max(0, self.size - self.code.size - self.code.symbols - self.code.debug)


@dataclass(frozen=True)
class Inspection:
    """What is in an artifact.

    ``size`` is bytes of its own file (of all files of a tree), ``installed_size`` those of its
    members unpacked. ``other`` holds everything that is neither in ``libraries`` nor in ``loose``
    (cubins and PTX in files of their own, by architecture). ``stamps`` are the ``wheelslim.json`` in
    it. ``notices`` are sentences about what could not be read.
    """

    artifact: str
    kind: ArtifactKind
    size: int
    installed_size: int
    libraries: tuple[InspectedLibrary, ...]
    loose: dict[str, Share] = field(default_factory=dict)
    other: dict[ContentKind, Content] = field(default_factory=dict)
    stamps: tuple[Stamp, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def with_device_code(self) -> tuple[InspectedLibrary, ...]:
        """The libraries that hold device code, the largest first."""
        found = [library for library in self.libraries if library.code.sections]
        return tuple(sorted(found, key=lambda library: (-library.size, library.path)))

    @property
    def architectures(self) -> dict[str, Share]:
        """Entries and bytes by label over the whole artifact, loose files included."""
        return added_shares(*(library.architectures for library in self.libraries), self.loose)


def inspect(path: str | PathLike[str]) -> Inspection:
    """Look into a wheel, a conda package, a directory, a library, or a loose fatbin or cubin.

    Only ELF files and fatbins are unpacked, one at a time, and only their headers are read.

    Raises:
        WheelslimError: whatever is wrong, with its place.
    """
    return survey(path)


def survey(path: str | PathLike[str], *, links: bool = False) -> Inspection:
    """Do what ``inspect`` does; with ``links`` also find the results of device links (slower).

    Raises:
        WheelslimError: whatever is wrong, with its place.
    """
    path = Path(path)
    try:
        with open_artifact(path) as artifact:
            return _survey(artifact, links)
    except WheelslimError as error:
        raise error.at(artifact=str(path)) from error.__cause__


def _survey(artifact: Artifact, links: bool) -> Inspection:
    counts: Counter[ContentKind] = Counter()
    sizes: Counter[ContentKind] = Counter()
    libraries: list[InspectedLibrary] = []
    notices: list[str] = []
    loose = _Loose()
    kinds: dict[str, ContentKind] = {}
    stamps: list[str] = []
    installed = 0

    def wants(member: Member, head: bytes) -> bool:
        kind = kinds[member.name] = content_kind(member.name, head)
        if is_stamp(member.name):
            stamps.append(member.name)
        if kind is ContentKind.CUBIN:
            loose.add(cubin_label(member.name, head), member.size)
        return kind in _LOOK_INSIDE

    for member, source in artifact.walk(wants):
        if member.type is not MemberType.FILE:
            continue
        installed += member.size
        kind = kinds.pop(member.name, ContentKind.OTHER)
        if kind is ContentKind.PTX and source is not None:
            loose.add(ptx_label(source), member.size)
            continue
        code = None if source is None else _read(kind, member, source, notices, links)
        if code is not None:
            libraries.append(InspectedLibrary(member.name, member.size, member.stored, code))
        elif kind is not ContentKind.CUBIN:
            kind = ContentKind.OTHER if kind in _LOOK_INSIDE else kind
            counts[kind] += 1
            sizes[kind] += member.size
    if artifact.kind is ArtifactKind.FILE and not libraries and not loose.counts:
        raise notices_error(notices)
    if isinstance(artifact, TreeArtifact):
        notices.extend(artifact.problems)
    return Inspection(
        artifact=str(artifact.path),
        kind=artifact.kind,
        size=artifact.size,
        installed_size=installed,
        libraries=tuple(libraries),
        loose=loose.shares(),
        other={kind: Content(counts[kind], sizes[kind]) for kind in ContentKind if counts[kind]},
        stamps=tuple(_stamps(artifact, stamps, notices)),
        notices=tuple(notices),
    )


def _stamps(artifact: Artifact, names: list[str], notices: list[str]) -> Iterator[Stamp]:
    for name in names:
        try:
            yield read_stamp(name, artifact.read(name))
        except WheelslimError as error:
            notices.append(f"{name} is not understood: {error}")


def _read(
    kind: ContentKind, member: Member, source: Source, notices: list[str], links: bool
) -> DeviceCode | None:
    """Read one member; None, and a notice, where it does not parse."""
    try:
        if kind is ContentKind.FATBIN:
            return read_loose_fatbin(source)
        return read_device_code(source, links=links)
    except (ElfFormatError, FatbinFormatError) as error:
        notices.append(f"{member.name} is not understood: {error}")
        return None


def notices_error(notices: list[str]) -> ArtifactError:
    """Describe a single file in which nothing was found."""
    return ArtifactError(
        "neither a wheel or conda package nor a 64-bit ELF file, fatbin or cubin",
        place=Place(),
        found=notices[0] if notices else None,
    )


class _Loose:
    """Counts files of device code by label."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.sizes: Counter[str] = Counter()

    def add(self, label: str, size: int) -> None:
        self.counts[label] += 1
        self.sizes[label] += size

    def shares(self) -> dict[str, Share]:
        labels = sorted(self.counts, key=label_order)
        return {label: Share(self.counts[label], self.sizes[label]) for label in labels}


def cubin_image(name: str, size: int, head: bytes) -> LooseImage:
    """Describe a loose cubin: the number is that in its header, the suffix that in its name."""
    number = cubin_number(head)
    if number is None:
        return LooseImage(name, size, LooseKind.CUBIN, None, "of unknown ABI version")
    architecture = named_architecture(name, number) or Architecture(number)
    return LooseImage(name, size, LooseKind.CUBIN, architecture)


def cubin_label(name: str, head: bytes) -> str:
    """Name the architecture of a loose cubin."""
    architecture = cubin_image(name, 0, head).architecture
    return UNKNOWN_CUBIN if architecture is None else architecture.name


def ptx_label(source: Source) -> str:
    """Name the architecture of a loose file of PTX."""
    word = ptx_target(source.read(0, min(source.size, _PTX_HEAD)))
    return Architecture.parse(word).ptx_name if word else UNKNOWN_PTX


def group_shares(groups: Iterable[ContainerGroup]) -> dict[str, Share]:
    """Sum the entries of groups by label, sorted by architecture."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    order: dict[str, tuple[int, str]] = {}
    for group in groups:
        for entry, size in zip(group.entries, group.sizes, strict=True):
            label = entry.label
            counts[label] += len(group.places)
            sizes[label] += size
            order[label] = (entry.sm, label)
    return {label: Share(counts[label], sizes[label]) for label in sorted(order, key=order.__getitem__)}


def added_shares(*parts: dict[str, Share]) -> dict[str, Share]:
    """Sum shares by label."""
    total: dict[str, Share] = {}
    for part in parts:
        for label, share in part.items():
            old = total.get(label, Share(0, 0))
            total[label] = Share(old.entries + share.entries, old.size + share.size)
    return dict(sorted(total.items(), key=lambda item: label_order(item[0])))


def code_sections(libraries: Iterable[InspectedLibrary]) -> list[tuple[InspectedLibrary, CodeSection]]:
    """Pair each section with its library, in order."""
    return [(library, section) for library in libraries for section in library.code.sections]
