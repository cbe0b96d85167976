"""A library read for what matters here: its ELF headers, its device code, and who points at it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.elf.entanglement import AddressRanges, misplacement, named_by_tags
from wheelslim.elf.layout import ObjectType, SectionType
from wheelslim.elf.overlap import sharing_bytes
from wheelslim.elf.reader import read_dynamic, read_elf
from wheelslim.elf.references import Reference, find_references, symbol_addresses, written_addresses
from wheelslim.errors import ArtifactError, FatbinFormatError
from wheelslim.fatbin.layout import DEVICE_SECTIONS, WRAPPER, WRAPPER_MAGIC, WRAPPER_TARGET_OFFSET
from wheelslim.fatbin.model import Container, Tiling, Wrapper
from wheelslim.fatbin.reader import HeaderWindow, read_tiling

if TYPE_CHECKING:
    from wheelslim.elf.model import ElfFile, Section
    from wheelslim.source import Source

_WRAPPER_VERSIONS = (1, 2)

MAX_DEVICE_SECTIONS = 1024
"""A library has two; holes that stay readable part them further."""


@dataclass(frozen=True)
class DeviceSection:
    """A section of containers; ``index`` is its place in the section header table.

    ``wrapped`` maps a container's address to the one reference that a wrapper makes to it;
    containers that are not in it are pinned: code may point at them.
    """

    index: int
    section: Section
    tiling: Tiling
    wrapped: dict[int, Reference] = field(default_factory=dict)

    def address(self, container: Container) -> int:
        """The virtual address of a container of this section."""
        return self.section.sh_addr + container.offset

    def is_pinned(self, container: Container) -> bool:
        """Whether the container must keep its address."""
        return self.address(container) not in self.wrapped


@dataclass(frozen=True)
class Library:
    """An ELF file with its device code.

    ``notes`` say which sections were not understood and stay as they are.
    """

    elf: ElfFile
    device: tuple[DeviceSection, ...]
    wrappers: tuple[Wrapper, ...]
    dynamic: tuple[tuple[int, int, int], ...]
    notes: tuple[str, ...] = ()

    @property
    def containers(self) -> tuple[Container, ...]:
        """All containers, by section and address."""
        return tuple(container for part in self.device for container in part.tiling.containers)


def read_library(source: Source) -> Library:
    """Read headers, containers, relocations and wrappers; payloads are not read.

    Raises:
        ElfFormatError: the file is no well-formed ELF64 little-endian file.
    """
    elf = read_elf(source)
    dynamic = read_dynamic(source, elf)
    notes: list[str] = []
    device = _device_sections(source, elf, dynamic, notes)
    if not device or elf.header.e_type == ObjectType.REL:
        return Library(elf, tuple(device), (), dynamic, tuple(notes))
    try:
        device = _unwritten(source, elf, device, notes)
        ranges = _ranges(device)
        references = find_references(source, elf, ranges)
        symbols = symbol_addresses(source, elf, ranges)
    except ArtifactError as error:
        notes.append(f"containers stay where they are, since references cannot be read: {error}")
        references, symbols = [], set()
    wrapped, wrappers = _wrapped(source, elf, references)
    device = _well_named(device, wrappers, notes)
    device = [_with_wrapped(part, wrapped, references, symbols) for part in device]
    return Library(elf, tuple(device), wrappers, dynamic, tuple(notes))


def _device_sections(
    source: Source, elf: ElfFile, dynamic: tuple[tuple[int, int, int], ...], notes: list[str]
) -> list[DeviceSection]:
    """Read the sections that are nothing but containers, and that nothing else has a part in."""
    device: list[DeviceSection] = []
    sharing = sharing_bytes(elf)
    named = named_by_tags(dynamic if elf.header.e_type != ObjectType.REL else ())
    indexes = [i for i, s in enumerate(elf.sections) if s.name in DEVICE_SECTIONS and s.file_size]
    for index in indexes[:MAX_DEVICE_SECTIONS]:
        section = elf.sections[index]
        if section.sh_type != SectionType.PROGBITS:
            notes.append(f"{section.name} has section type {section.sh_type:#x}: left as it is")
            continue
        reason = misplacement(elf, index, sharing)
        if reason is None and named.overlap(section.sh_addr, section.sh_addr + section.sh_size):
            reason = "the dynamic table names bytes of it"
        if reason is not None:
            notes.append(f"{section.name} is left as it is: {reason}")
            continue
        try:
            tiling = read_tiling(source.part(section.sh_offset, section.sh_size), section.sh_addr)
        except FatbinFormatError as error:
            notes.append(f"{section.name} is left as it is: {error.at(section=section.name)}")
            continue
        if tiling.containers:
            device.append(DeviceSection(index, section, tiling))
    if len(indexes) > MAX_DEVICE_SECTIONS:
        notes.append(f"{len(indexes)} sections of device code: only the first {MAX_DEVICE_SECTIONS} are read")
    return device


def _unwritten(
    source: Source, elf: ElfFile, device: list[DeviceSection], notes: list[str]
) -> list[DeviceSection]:
    """Leave out sections that the loader writes to: there is more in them than containers."""
    written = AddressRanges((at, at + 8) for at in written_addresses(source, elf, _ranges(device)))
    kept = []
    for part in device:
        if written.overlap(part.section.sh_addr, part.section.sh_addr + part.section.sh_size):
            notes.append(f"{part.section.name} is left as it is: relocations write into it")
        else:
            kept.append(part)
    return kept


def _well_named(
    device: list[DeviceSection], wrappers: tuple[Wrapper, ...], notes: list[str]
) -> list[DeviceSection]:
    """Leave out sections of which a wrapper names other bytes than a container's first.

    They could be a container inside another's payload, which would go with that one.
    """
    kept = []
    targets = sorted({wrapper.target for wrapper in wrappers})
    for part in device:
        start, end = part.section.sh_addr, part.section.sh_addr + part.section.sh_size
        named = set(targets[bisect_left(targets, start) : bisect_left(targets, end)])
        if strays := named - {part.address(container) for container in part.tiling.containers}:
            where = f"{min(strays):#x}, where none starts"
            notes.append(f"{part.section.name} is left as it is: a wrapper names a container at {where}")
        else:
            kept.append(part)
    return kept


def _ranges(device: list[DeviceSection]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((p.section.sh_addr, p.section.sh_addr + p.section.sh_size) for p in device))


def _wrapped(
    source: Source, elf: ElfFile, references: list[Reference]
) -> tuple[dict[int, Reference], tuple[Wrapper, ...]]:
    """Return the references that are a wrapper's, by target, and the wrappers by address."""
    found: dict[int, Reference] = {}
    wrappers: list[Wrapper] = []
    window = HeaderWindow(source)
    for reference in sorted(references):
        address = reference.slot - WRAPPER_TARGET_OFFSET
        offset = elf.offset_of(address, WRAPPER.size)
        if offset is None:
            continue
        magic, version, _, _ = WRAPPER.unpack(window.read(offset, WRAPPER.size))
        if magic == WRAPPER_MAGIC and version in _WRAPPER_VERSIONS:
            found[reference.target] = reference
            wrappers.append(Wrapper(address, version, reference.target))
    return found, tuple(wrappers)


def _with_wrapped(
    part: DeviceSection, wrapped: dict[int, Reference], references: list[Reference], symbols: set[int]
) -> DeviceSection:
    """Keep only wrappers' references to containers that nothing else points at or into."""
    targets: dict[int, int] = defaultdict(int)
    for reference in references:
        targets[reference.target] += 1
    pointed = sorted({*targets, *symbols})
    free: dict[int, Reference] = {}
    position = 0
    for container in part.tiling.containers:
        start = part.address(container)
        end = start + container.size
        while position < len(pointed) and pointed[position] < start:
            position += 1
        inside = []
        while position < len(pointed) and pointed[position] < end:
            inside.append(pointed[position])
            position += 1
        if inside == [start] and targets[start] == 1 and start not in symbols and start in wrapped:
            free[start] = wrapped[start]
    return DeviceSection(part.index, part.section, part.tiling, free)
