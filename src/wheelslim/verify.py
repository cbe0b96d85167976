"""The promises, proved on two libraries. Shares no code with what plans and writes the slimmed one.

Only the readers are common: ``library``, ``elf.reader`` and ``fatbin.reader``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from wheelslim.elf.layout import DYN, EHDR, PHDR, SHDR, SectionType, SegmentType
from wheelslim.errors import Place, VerifyError
from wheelslim.fatbin.layout import DEVICE_SECTIONS
from wheelslim.image import AddressRange, check_loads, compare_images
from wheelslim.library import read_library
from wheelslim.selection import choose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelslim.architecture import ComputeCapability
    from wheelslim.elf.model import ElfFile, Section
    from wheelslim.fatbin.model import Container, Entry
    from wheelslim.library import DeviceSection, Library
    from wheelslim.source import Source

_WORD = 8


@dataclass(frozen=True, slots=True)
class LibraryProof:
    """What was compared: containers, (container, device) pairs, kept entries, host bytes in bytes."""

    containers: int
    choices: int
    entries: int
    host_bytes: int

    def __add__(self, other: LibraryProof) -> LibraryProof:
        """Sum the counts."""
        return LibraryProof(
            self.containers + other.containers,
            self.choices + other.choices,
            self.entries + other.entries,
            self.host_bytes + other.host_bytes,
        )


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two files."""

    source: Source
    library: Library

    @property
    def elf(self) -> ElfFile:
        return self.library.elf


@dataclass(frozen=True, slots=True)
class _Placed:
    """A container with its virtual address and the source that its offsets count in."""

    container: Container
    address: int
    source: Source
    section: str


def verify_library(original: Source, slimmed: Source, devices: Sequence[ComputeCapability]) -> LibraryProof:
    """Prove that each device runs the same device code from both, and that the host part is the same.

    Raises:
        VerifyError: the first promise that does not hold, with its place in the slimmed file.
        ElfFormatError: one of the two is no well-formed ELF file.
    """
    before = _Side(original, read_library(original))
    after = _Side(slimmed, read_library(slimmed))
    _check_related(before.elf, after.elf)
    check_loads(after.elf)
    pairs = list(_paired(before, after))
    entries = choices = 0
    for old, new in pairs:
        entries += _compare_entries(old, new)
        choices += _compare_choices(old, new, devices)
    moved = _compare_sections(before, after)
    exempt = [
        *_header_ranges(before),
        *_wrapper_ranges(before, after),
        *moved,
        *_dynamic_ranges(before, after),
    ]
    device = [
        AddressRange(part.section.sh_addr, part.section.sh_addr + part.section.sh_size)
        for part in before.library.device
    ]
    host = compare_images((original, before.elf), (slimmed, after.elf), exempt, device)
    _compare_segments(before.elf, after.elf)
    return LibraryProof(len(pairs), choices, entries, host)


def _check_related(before: ElfFile, after: ElfFile) -> None:
    for name in ("e_type", "e_machine", "e_flags", "e_entry"):
        old, new = getattr(before.header, name), getattr(after.header, name)
        if old != new:
            raise VerifyError(
                f"the files are unrelated: {name} differs", expected=f"{old:#x}", found=f"{new:#x}"
            )
    if before.header.e_ident != after.header.e_ident:
        raise VerifyError("the files are unrelated: e_ident differs")


def _containers(side: _Side) -> dict[int, _Placed]:
    placed = {}
    for part in side.library.device:
        source = side.source.part(part.section.sh_offset, part.section.sh_size)
        for container in part.tiling.containers:
            address = part.address(container)
            placed[address] = _Placed(container, address, source, part.section.name)
    return placed


def _paired(before: _Side, after: _Side) -> Iterator[tuple[_Placed, _Placed]]:
    """Pair containers by the wrapper that names them, and the others by their address."""
    old_by_address, new_by_address = _containers(before), _containers(after)
    old_wrappers, new_wrappers = before.library.wrappers, after.library.wrappers
    for old, new in zip_longest(old_wrappers, new_wrappers):
        if old is None or new is None or (old.address, old.version) != (new.address, new.version):
            raise VerifyError(
                "the wrappers differ",
                expected="the end"
                if old is None
                else f"a wrapper of version {old.version} at {old.address:#x}",
                found="the end" if new is None else f"one of version {new.version} at {new.address:#x}",
            )
    named_old = {wrapper.target for wrapper in old_wrappers}
    named_new = {wrapper.target for wrapper in new_wrappers}
    partner: dict[int, int] = {}
    for old, new in zip(old_wrappers, new_wrappers, strict=True):
        if partner.setdefault(old.target, new.target) != new.target:
            raise VerifyError(f"wrappers of one container at {old.target:#x} now name different ones")
    partner.update((address, address) for address in old_by_address if address not in named_old)
    for old_address, new_address in sorted(partner.items()):
        if old_address not in old_by_address:
            continue  # A wrapper of a section that is not understood: it is compared as host bytes.
        if new_address not in new_by_address:
            raise VerifyError(
                f"the container that lay at {old_address:#x} is gone",
                expected=f"a container at address {new_address:#x}",
                found="none",
            )
        yield old_by_address[old_address], new_by_address[new_address]
    strangers = set(new_by_address) - set(partner.values())
    if strangers:
        raise VerifyError(f"a container at {min(strangers):#x} has no counterpart in the original")
    order_old = [address for address in old_by_address if address in named_old]
    order_new = [address for address in new_by_address if address in named_new]
    if [partner[address] for address in order_old] != order_new:
        raise VerifyError("the containers are in another order")


def _compare_entries(old: _Placed, new: _Placed) -> int:
    """Every entry of the slimmed container is one of the original's, byte for byte and in order."""
    candidates = iter(old.container.entries)
    for entry in new.container.entries:
        for candidate in candidates:
            if _same_header(candidate, entry) and _same_bytes(old, candidate, new, entry):
                break
        else:
            raise VerifyError(
                f"an entry for {entry.label} is none of the original's entries",
                place=Place(section=new.section, offset=entry.offset),
                hint=f"The container lay at address {old.address:#x} before",
            )
    return len(new.container.entries)


def _same_header(old: Entry, new: Entry) -> bool:
    return old._replace(offset=0) == new._replace(offset=0)


def _same_bytes(old: _Placed, old_entry: Entry, new: _Placed, new_entry: Entry) -> bool:
    pairs = zip(
        old.source.blocks(old_entry.offset, old_entry.size),
        new.source.blocks(new_entry.offset, new_entry.size),
        strict=True,
    )
    return all(one == other for one, other in pairs)


def _compare_choices(old: _Placed, new: _Placed, devices: Sequence[ComputeCapability]) -> int:
    """Each device chooses the same entries, ties included; their bytes are compared already."""
    for device in devices:
        was = choose(old.container.entries, device)
        now = choose(new.container.entries, device)
        wanted = [old.container.entries[index]._replace(offset=0) for index in was.entries]
        found = [new.container.entries[index]._replace(offset=0) for index in now.entries]
        if wanted != found:
            raise VerifyError(
                f"sm_{device.number} no longer runs what it ran before",
                place=Place(section=new.section, offset=new.container.offset),
                expected=was.text,
                found=now.text,
                hint=f"The container lay at address {old.address:#x} before",
            )
    return len(devices)


def _compare_sections(before: _Side, after: _Side) -> list[AddressRange]:
    """Compare section by section; returns the address ranges whose sections moved (compared here)."""
    moved = []
    taken: set[int] = set()
    for section in before.elf.sections:
        index = _counterpart(section, after.elf, taken)
        if index is None:
            raise VerifyError(f"section {section.name} is gone")
        taken.add(index)
        new = after.elf.sections[index]
        if section.name in DEVICE_SECTIONS and section.is_alloc:
            continue
        if section.sh_size != new.sh_size:
            raise VerifyError(
                f"section {section.name} has another size",
                place=Place(section=section.name),
                expected=f"{section.sh_size} bytes",
                found=f"{new.sh_size} bytes",
            )
        if section.is_alloc and section.sh_addr == new.sh_addr:
            continue  # Compared with the image, at its address.
        if section.file_size:
            _compare_content(before.source, section, after.source, new)
            if section.is_alloc:
                moved.append(AddressRange(section.sh_addr, section.sh_addr + section.sh_size))
    return moved


def _counterpart(section: Section, elf: ElfFile, taken: set[int]) -> int | None:
    same = [
        index
        for index, new in enumerate(elf.sections)
        if index not in taken
        and (new.name, new.sh_type, new.sh_flags) == (section.name, section.sh_type, section.sh_flags)
    ]
    at_address = [index for index in same if elf.sections[index].sh_addr == section.sh_addr]
    return next(iter(at_address or same), None)


def _compare_content(old_source: Source, old: Section, new_source: Source, new: Section) -> None:
    position = 0
    for one, other in zip(
        old_source.blocks(old.sh_offset, old.sh_size),
        new_source.blocks(new.sh_offset, new.sh_size),
        strict=True,
    ):
        if one != other:
            where = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
            raise VerifyError(
                f"section {old.name} differs",
                place=Place(section=old.name, offset=position + where),
                expected=f"{one[where]:#04x}",
                found=f"{other[where]:#04x}",
            )
        position += len(one)


def _header_ranges(side: _Side) -> Iterator[AddressRange]:
    """Where headers lie in memory: they describe the file and differ by design.

    The program header table may grow up to the first section that has not moved.
    """
    header = side.elf.header
    ends = [s.sh_offset for s in side.elf.sections if s.file_size and s.is_alloc]
    table_end = header.e_phoff + header.e_phnum * PHDR.size
    limit = min((end for end in ends if end >= table_end), default=table_end)
    for start, end in (
        (0, EHDR.size),
        (header.e_phoff, limit),
        (header.e_shoff, header.e_shoff + header.e_shnum * SHDR.size),
    ):
        for load in side.elf.loads:
            low, high = max(start, load.p_offset), min(end, load.file_end)
            if low < high:
                shift = load.p_vaddr - load.p_offset
                yield AddressRange(low + shift, high + shift)


def _wrapper_ranges(before: _Side, after: _Side) -> Iterator[AddressRange]:
    """The words that name a container: the relocation's addend and the word itself, where it did."""
    new_parts = {address: part for part in after.library.device for address in part.wrapped}
    new_target = {wrapper.address: wrapper.target for wrapper in after.library.wrappers}
    for part in before.library.device:
        for reference in part.wrapped.values():
            target = new_target[reference.slot - _WORD]
            new_part: DeviceSection | None = new_parts.get(target)
            if new_part is None or new_part.wrapped[target].slot != reference.slot:
                raise VerifyError(f"the relocation at {reference.slot:#x} no longer names a container alone")
            yield from _addend_range(before, reference.addend_offset)
            yield _slot_range(before, after, reference.slot, reference.target, target)


def _addend_range(side: _Side, offset: int | None) -> Iterator[AddressRange]:
    if offset is None:
        return
    for load in side.elf.loads:
        if load.p_offset <= offset < load.file_end:
            address = offset - load.p_offset + load.p_vaddr
            yield AddressRange(address, address + _WORD)


def _slot_range(before: _Side, after: _Side, slot: int, old_target: int, new_target: int) -> AddressRange:
    old_offset, new_offset = before.elf.offset_of(slot, _WORD), after.elf.offset_of(slot, _WORD)
    if old_offset is None or new_offset is None:
        raise VerifyError(f"the wrapper's word at {slot:#x} is not in the file")
    old = int.from_bytes(before.source.read(old_offset, _WORD), "little")
    new = int.from_bytes(after.source.read(new_offset, _WORD), "little")
    if new != (new_target if old == old_target else old):
        raise VerifyError(
            f"the wrapper's word at address {slot:#x} is wrong",
            expected=f"{new_target if old == old_target else old:#x}",
            found=f"{new:#x}",
        )
    return AddressRange(slot, slot + _WORD)


def _dynamic_ranges(before: _Side, after: _Side) -> Iterator[AddressRange]:
    """Dynamic tags may differ only where they name a section that moved (its content is compared)."""
    places = {s.sh_addr: s for s in before.elf.sections if s.is_alloc and s.sh_type != SectionType.NOBITS}
    new_places = {s.sh_addr: s for s in after.elf.sections if s.is_alloc and s.sh_type != SectionType.NOBITS}
    for old, new in zip_longest(before.library.dynamic, after.library.dynamic):
        if old is None or new is None or old[1] != new[1]:
            raise VerifyError("the dynamic tables have other tags")
        if old[2] == new[2]:
            continue
        was, now = places.get(old[2]), new_places.get(new[2])
        if was is None or now is None or (was.name, was.sh_size) != (now.name, now.sh_size):
            raise VerifyError(
                f"dynamic tag {old[1]:#x} differs", expected=f"{old[2]:#x}", found=f"{new[2]:#x}"
            )
        for load in before.elf.loads:
            if load.p_offset <= old[0] < load.file_end:
                address = old[0] - load.p_offset + load.p_vaddr
                yield AddressRange(address, address + DYN.size)


def _compare_segments(before: ElfFile, after: ElfFile) -> None:
    """Program headers other than PT_LOAD and PT_PHDR say the same; notes may have moved."""
    movable = (SegmentType.NOTE, SegmentType.GNU_PROPERTY)
    passed = (SegmentType.LOAD, SegmentType.PHDR)
    olds = [s for s in before.segments if s.p_type not in passed]
    news = [s for s in after.segments if s.p_type not in passed]
    for old, new in zip_longest(olds, news):
        if old is None or new is None:
            raise VerifyError("the program headers differ in number")
        expected = old._replace(p_offset=new.p_offset)
        if old.p_type in movable and new.p_vaddr != old.p_vaddr:
            home = next((s for s in after.sections if s.is_alloc and s.sh_addr == new.p_vaddr), None)
            if home is None or home.sh_type != SectionType.NOTE:
                raise VerifyError("a note segment leads nowhere", found=f"{new.p_vaddr:#x}")
            expected = expected._replace(p_vaddr=new.p_vaddr, p_paddr=new.p_paddr)
        if new != expected:
            raise VerifyError(f"program header of type {old.p_type:#x} differs", found=str(new))
        if new.p_filesz and after.offset_of(new.p_vaddr, new.p_filesz) != new.p_offset:
            raise VerifyError(f"program header of type {old.p_type:#x} names the wrong file offset")
