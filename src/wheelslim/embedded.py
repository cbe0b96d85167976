"""Device code outside the sections that nvcc fills: containers in ``.rodata``, ``.data`` or a library's own.

Who points at such a container, and how, only its library knows. So each keeps its place, and what goes
becomes zeros that can still be read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheelslim.account import EmbeddedAccount, shares
from wheelslim.elf.entanglement import AddressRanges, misplacement, named_by_tags
from wheelslim.elf.filemap import Overlay
from wheelslim.elf.freerun import AfterCut, FreeRun
from wheelslim.elf.layout import ObjectType, SectionFlag, SectionType, SegmentFlag
from wheelslim.elf.overlap import sharing_bytes
from wheelslim.elf.reader import read_dynamic
from wheelslim.elf.references import written_addresses
from wheelslim.errors import ElfFormatError, FatbinFormatError
from wheelslim.fatbin.evidence import is_plausible
from wheelslim.fatbin.layout import CONTAINER_MAGIC_BYTES, DEVICE_SECTIONS, SECTION_ALIGNMENT
from wheelslim.fatbin.reader import HeaderWindow, read_container
from wheelslim.fatbin.writer import container_pieces
from wheelslim.pieces import Zeros, total_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelslim.elf.model import ElfFile, Section
    from wheelslim.fatbin.model import Container
    from wheelslim.plan import ContainerPlan, Planner
    from wheelslim.source import Source

_BLOCK = 1 << 20
_PADDING_MAX = 256
"""Between containers, zeros up to this length are padding (measured: up to 31 in libcufft)."""

WASTED_READS = 1 << 20
"""Headers read in vain before the search gives up: bytes can be made so that every parse fails late."""


@dataclass(frozen=True)
class EmbeddedRegion:
    """A section with containers among other data; ``index`` is its place in the section header table.

    The containers' offsets count from the section's start.
    """

    index: int
    section: Section
    containers: tuple[Container, ...]

    def address(self, container: Container) -> int:
        """The virtual address of a container of this section."""
        return self.section.sh_addr + container.offset


def find_embedded(source: Source, elf: ElfFile) -> tuple[EmbeddedRegion, ...]:
    """Find the containers outside the device sections: the magic, aligned, and a full parse.

    A container inside another's payload is part of that one. Code and object files are not searched.

    Raises:
        ArtifactError: the file became shorter while it was read.
    """
    if elf.header.e_type not in (ObjectType.DYN, ObjectType.EXEC):
        return ()
    regions = []
    budget = WASTED_READS
    sharing = sharing_bytes(elf)
    for index, section in enumerate(elf.sections):
        if not _may_hold(section) or misplacement(elf, index, sharing) is not None:
            continue
        if not _is_readable(elf, section):
            continue
        search = _Search(source.part(section.sh_offset, section.sh_size), section.sh_addr, budget)
        containers = tuple(search.containers())
        budget = search.budget
        if containers:
            regions.append(EmbeddedRegion(index, section, containers))
    return _unused(source, elf, regions) if regions else ()


def _unused(source: Source, elf: ElfFile, regions: list[EmbeddedRegion]) -> tuple[EmbeddedRegion, ...]:
    """Leave out what only looks like a container: the loader writes into it, or finds a table there."""
    ranges = tuple(sorted((r.section.sh_addr, r.section.sh_addr + r.section.sh_size) for r in regions))
    try:
        written = AddressRanges((at, at + 8) for at in written_addresses(source, elf, ranges))
    except ElfFormatError:
        return ()
    named = named_by_tags(read_dynamic(source, elf))
    kept = []
    for region in regions:
        containers = []
        for container in region.containers:
            start = region.address(container)
            end = start + container.size
            if not written.overlap(start, end) and not named.overlap(start, end):
                containers.append(container)
        if containers:
            kept.append(replace(region, containers=tuple(containers)))
    return tuple(kept)


def _may_hold(section: Section) -> bool:
    return (
        section.sh_type == SectionType.PROGBITS
        and section.is_alloc
        and not section.sh_flags & SectionFlag.EXECINSTR
        and section.name not in DEVICE_SECTIONS
    )


def _is_readable(elf: ElfFile, section: Section) -> bool:
    """Tell whether a process may read the section: nobody hands over what nobody can read."""
    return any(
        load.p_flags & SegmentFlag.R
        for load in elf.loads
        if load.p_vaddr <= section.sh_addr < load.address_end
    )


class _Search:
    """Containers in a section; ``budget`` is how many reads may still be wasted on what is none."""

    def __init__(self, data: Source, address: int, budget: int) -> None:
        """Search ``data``, whose first byte has the virtual address ``address``."""
        self._data = data
        self._address = address
        self._window = HeaderWindow(data)
        self.budget = budget

    def containers(self) -> Iterator[Container]:
        """Yield them by offset."""
        size = self._data.size
        position = 0
        start, block = 0, b""
        while position < size:
            if position >= start + len(block) - len(CONTAINER_MAGIC_BYTES):
                start, block = position, self._data.read(position, min(_BLOCK, size - position))
            found = block.find(CONTAINER_MAGIC_BYTES, position - start)
            if found < 0:
                after = start + len(block)
                position = after if after == size else after - len(CONTAINER_MAGIC_BYTES) + 1
                continue
            position = start + found
            container = self._parsed(position)
            if container is None:
                position += 1
            else:
                yield container
                position = container.end

    def _parsed(self, offset: int) -> Container | None:
        if (self._address + offset) % SECTION_ALIGNMENT or self.budget <= 0:
            return None
        before = self._window.reads
        try:
            container = read_container(self._data, offset, self._window)
        except FatbinFormatError:
            container = None
        if container is not None and is_plausible(container, self._window):
            return container
        self.budget -= self._window.reads - before
        return None


@dataclass(frozen=True)
class EmbeddedPlan:
    """The overlays that change embedded containers, the runs that they free, and the account of it."""

    overlays: tuple[Overlay, ...]
    runs: tuple[FreeRun, ...]
    account: EmbeddedAccount


def plan_embedded(source: Source, elf: ElfFile, planner: Planner) -> EmbeddedPlan:
    """Plan every embedded container by the same rule as the others.

    Raises:
        ArtifactError: the file became shorter while it was read.
    """
    overlays: list[Overlay] = []
    runs: list[FreeRun] = []
    pairs: list[tuple[Container, ContainerPlan]] = []
    for region in find_embedded(source, elf):
        plans = [planner.plan(container) for container in region.containers]
        new, freed = _compacted(source, region, plans)
        overlays.extend(new)
        runs.extend(freed)
        pairs.extend(zip(region.containers, plans, strict=True))
    account = EmbeddedAccount(
        containers=len(pairs),
        emptied=sum(not plan.kept for _, plan in pairs),
        before=shares(entry for container, _ in pairs for entry in container.entries),
        after=shares(container.entries[index] for container, plan in pairs for index in plan.kept),
    )
    return EmbeddedPlan(tuple(overlays), tuple(runs), account)


def served_elsewhere(
    source: Source, elf: ElfFile, planner: Planner, plans: Sequence[ContainerPlan]
) -> tuple[str, ...]:
    """Name the targets that embedded containers serve and none of the planned ones does.

    Costs a search through the data sections, and nothing where every target is served already.

    Raises:
        ArtifactError: the file became shorter while it was read.
    """
    devices = planner.request.devices
    unserved = {i for i in range(len(devices)) if not any(plan.before[i].entries for plan in plans)}
    found: set[int] = set()
    for region in find_embedded(source, elf) if unserved else ():
        for container in region.containers:
            before = planner.plan(container).before
            found.update(index for index in unserved - found if before[index].entries)
    return tuple(devices[index].name for index in sorted(found))


def _compacted(
    source: Source, region: EmbeddedRegion, plans: Sequence[ContainerPlan]
) -> tuple[list[Overlay], list[FreeRun]]:
    """Compact each container where it lies; one of which nothing stays becomes zeros, header and all.

    Freed bytes that only padding parts are one run.
    """
    base = region.section.sh_offset
    overlays: list[Overlay] = []
    freed: list[tuple[int, int]] = []
    for container, plan in zip(region.containers, plans, strict=True):
        if len(plan.kept) == len(container.entries):
            continue
        start = container.offset
        if plan.kept:
            pieces = tuple(container_pieces(container, plan.kept, base))
            overlays.append(Overlay(base + start, pieces))
            start += total_size(pieces)
        overlays.append(Overlay(base + start, (Zeros(container.end - start),)))
        if freed and _is_padding(source, base + freed[-1][1], base + start):
            freed[-1] = (freed[-1][0], container.end)
        else:
            freed.append((start, container.end))
    runs = [FreeRun(base + start, end - start, region.index, AfterCut.ZEROS) for start, end in freed]
    return overlays, runs


def _is_padding(source: Source, start: int, end: int) -> bool:
    return end - start <= _PADDING_MAX and not any(source.read(start, end - start))
