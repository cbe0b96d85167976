"""The device code of one file, read for its containers alone: no relocations, no payloads.

Containers among other data, outside the sections that nvcc fills, are found too.

Containers whose entries are alike are kept as one group, since a library can hold 24,000 of them in a
few hundred kinds, and what a device runs depends on the kind only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from wheelslim.elf.layout import SectionType
from wheelslim.elf.reader import read_elf
from wheelslim.elf.weight import unloaded_weight
from wheelslim.embedded import find_embedded
from wheelslim.errors import FatbinFormatError
from wheelslim.fatbin.layout import DEVICE_SECTIONS, EntryFlag
from wheelslim.fatbin.model import Compression
from wheelslim.fatbin.reader import read_tiling
from wheelslim.library import read_library

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelslim.fatbin.model import Container, Entry
    from wheelslim.source import Source

LINKED_VERSION = 2
"""Version of the wrapper around what a device link made (documented in fatbinary_section.h)."""

WHOLE_FILE = "fatbin"
"""What the one section of a loose fatbin is called."""


class ContainerPlace(NamedTuple):
    """Where a container lies.

    ``number`` counts the containers of the file from 0, ``offset`` is bytes from the start of its
    section, ``size`` its bytes, header included.
    """

    number: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ContainerGroup:
    """Containers of one section with the same entries: kinds, architectures, flags and order.

    ``entries`` are those of the first container. ``sizes`` and ``compressed`` are bytes (header and
    padded payload) by position of the entry, summed over all containers; ``compressed`` counts the
    entries that are stored compressed.
    """

    entries: tuple[Entry, ...]
    places: tuple[ContainerPlace, ...]
    sizes: tuple[int, ...]
    compressed: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """What the entries were built for, in their order."""
        return tuple(entry.label for entry in self.entries)

    @property
    def has_code(self) -> bool:
        """Whether it holds an entry that a device could run."""
        return any(entry.is_known for entry in self.entries)


@dataclass(frozen=True, slots=True)
class CodeSection:
    """A section with device code.

    ``size`` is bytes of the section, or of its containers where it is ``embedded``: device code
    among other data.
    """

    name: str
    size: int
    groups: tuple[ContainerGroup, ...]
    embedded: bool = False

    @property
    def containers(self) -> int:
        """How many containers it holds."""
        return sum(len(group.places) for group in self.groups)


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What a file holds: sections with device code, and bytes of unloaded symbols and debug information.

    ``linked`` are the numbers of the containers that a device link made (their wrapper has version
    2), as far as the reader looked for them.
    """

    sections: tuple[CodeSection, ...]
    symbols: int = 0
    debug: int = 0
    notes: tuple[str, ...] = ()
    linked: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """Bytes of device code."""
        return sum(section.size for section in self.sections)

    @property
    def groups(self) -> tuple[ContainerGroup, ...]:
        """The groups of all sections."""
        return tuple(group for section in self.sections for group in section.groups)


def read_device_code(source: Source, *, links: bool = False) -> DeviceCode:
    """Read the device code of an ELF file; with ``links`` its relocations too, to fill ``linked``.

    Raises:
        ElfFormatError: the file is no well-formed ELF64 little-endian file.
    """
    elf = read_elf(source)
    sections: list[CodeSection] = []
    notes: list[str] = []
    first = 0
    for section in elf.sections:
        if section.name not in DEVICE_SECTIONS or not section.file_size:
            continue
        if section.sh_type != SectionType.PROGBITS:
            notes.append(f"{section.name} is not understood: section type {section.sh_type:#x}")
            continue
        try:
            tiling = read_tiling(source.part(section.sh_offset, section.sh_size), section.sh_addr)
        except FatbinFormatError as error:
            notes.append(f"{section.name} is not understood: {error.at(section=section.name)}")
            continue
        if tiling.containers:
            sections.append(CodeSection(section.name, section.sh_size, grouped(tiling.containers, first)))
            first += len(tiling.containers)
    for region in find_embedded(source, elf):
        size = sum(container.size for container in region.containers)
        groups = grouped(region.containers, first)
        sections.append(CodeSection(region.section.name, size, groups, embedded=True))
        first += len(region.containers)
    weight = unloaded_weight(elf)
    linked = _linked(source) if links and sections else frozenset()
    return DeviceCode(tuple(sections), weight.symbols, weight.debug, tuple(notes), linked)


def _linked(source: Source) -> frozenset[int]:
    library = read_library(source)
    targets = {wrapper.target for wrapper in library.wrappers if wrapper.version == LINKED_VERSION}
    addresses = (part.address(container) for part in library.device for container in part.tiling.containers)
    return frozenset(number for number, address in enumerate(addresses) if address in targets)


def read_loose_fatbin(source: Source) -> DeviceCode:
    """Read a file that is nothing but containers.

    Raises:
        FatbinFormatError: it is not.
    """
    tiling = read_tiling(source, 0)
    return DeviceCode((CodeSection(WHOLE_FILE, source.size, grouped(tiling.containers, 0)),))


def grouped(containers: Iterable[Container], first: int) -> tuple[ContainerGroup, ...]:
    """Group containers by what their entries are; their numbers start at ``first``."""
    found: dict[tuple[tuple[object, ...], ...], _Growing] = {}
    for number, container in enumerate(containers, first):
        key = tuple((e.kind, e.sm, e.flags, e.subs) for e in container.entries)
        group = found.get(key)
        if group is None:
            group = found[key] = _Growing(container.entries)
        group.places.append(ContainerPlace(number, container.offset, container.size))
        for position, entry in enumerate(container.entries):
            group.sizes[position] += entry.size
            if entry.compressed_size:
                group.compressed[position] += entry.size
    return tuple(
        ContainerGroup(g.entries, tuple(g.places), tuple(g.sizes), tuple(g.compressed))
        for g in found.values()
    )


class _Growing:
    """A group while containers are added."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.places: list[ContainerPlace] = []
        self.sizes = [0] * len(entries)
        self.compressed = [0] * len(entries)


def compression_shares(section: CodeSection) -> dict[Compression, int]:
    """Sum the bytes of the entries by how they are stored."""
    sizes: Counter[Compression] = Counter()
    for group in section.groups:
        for entry, size, compressed in zip(group.entries, group.sizes, group.compressed, strict=True):
            how = Compression.ZSTD if entry.flags & EntryFlag.ZSTD else Compression.LZ4
            sizes[how] += compressed
            sizes[Compression.NONE] += size - compressed
    return {how: sizes[how] for how in Compression if sizes[how]}
