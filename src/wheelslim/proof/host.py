"""The host part of two libraries: the same bytes at the same addresses, but for what must differ."""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING

from wheelslim.elf.layout import DYN, EHDR, PHDR, POINTERS, SHDR, SectionType, SegmentType
from wheelslim.errors import Place, VerifyError
from wheelslim.fatbin.layout import DEVICE_SECTIONS
from wheelslim.proof.declared import NOTHING_DECLARED
from wheelslim.proof.embedded import embedded_ranges
from wheelslim.proof.image import AddressRange, check_loads, compare_images
from wheelslim.proof.stripped import compare_symbols, may_be_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.elf.model import ElfFile, Section
    from wheelslim.library import DeviceSection
    from wheelslim.proof.declared import Declared
    from wheelslim.proof.side import Side
    from wheelslim.source import Source

_WORD = 8


def prove_host(before: Side, after: Side, declared: Declared = NOTHING_DECLARED) -> int:
    """Prove that host code and data are the same where a process sees them; returns the bytes compared.

    Embedded containers of ``before.regions`` are left to ``prove_device``.

    Raises:
        VerifyError: the first difference, with its place in the slimmed file.
    """
    if before.elf.segments != after.elf.segments:
        # Where they are the same, so is everything that a loader might find odd of them.
        check_loads(after.elf)
        _compare_segments(before.elf, after.elf)
    moved = _compare_sections(before, after, declared)
    exempt = [
        *_header_ranges(before, after),
        *_wrapper_ranges(before, after),
        *moved,
        *_dynamic_ranges(before, after),
    ]
    device = [
        AddressRange(part.section.sh_addr, part.section.sh_addr + part.section.sh_size)
        for part in before.library.device
    ]
    device.extend(embedded_ranges(before, after))
    return compare_images((before.source, before.elf), (after.source, after.elf), exempt, device)


def _compare_sections(before: Side, after: Side, declared: Declared) -> list[AddressRange]:
    """Compare section by section; returns the address ranges whose sections moved (compared here)."""
    moved = []
    pairs = _counterparts(before.elf, after.elf)
    gone = {index for index in range(1, len(before.elf.sections)) if index not in pairs}
    split = {region.index for region in before.regions}
    for index, section in enumerate(before.elf.sections):
        if index in split:
            _compare_parts(section, after.elf)
            continue
        if index not in pairs:
            if may_be_gone(section, declared.strip) or section.sh_type == SectionType.NULL:
                continue
            raise VerifyError(f"section {section.name} is gone")
        new = after.elf.sections[pairs[index]]
        if section.is_alloc and pairs[index] != index:
            raise VerifyError(f"section {section.name} has another number, which symbols hold")
        if section.name in DEVICE_SECTIONS and section.is_alloc:
            continue
        if index == before.elf.header.e_shstrndx and not section.is_alloc:
            continue  # The names themselves have been compared.
        if section.sh_size != new.sh_size:
            raise VerifyError(
                f"section {section.name} has another size",
                place=Place(section=section.name),
                expected=f"{section.sh_size} bytes",
                found=f"{new.sh_size} bytes",
            )
        if section.is_alloc and section.sh_addr == new.sh_addr:
            continue  # Compared with the image, at its address.
        if section.sh_type == SectionType.SYMTAB:
            compare_symbols(before, section, after, new, gone)
        elif section.file_size:
            _compare_content(before.source, section, after.source, new)
            if section.is_alloc:
                moved.append(AddressRange(section.sh_addr, section.sh_addr + section.sh_size))
    return moved


def _counterparts(before: ElfFile, after: ElfFile) -> dict[int, int]:
    """Pair the sections by name, type and flags, then by address, each once."""
    alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for index in reversed(range(len(after.sections))):
        new = after.sections[index]
        kind = (new.name, new.sh_type, new.sh_flags)
        for key in (kind, (*kind, new.sh_addr)):
            alike[key].append(index)
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for old_index, section in enumerate(before.sections):
        kind = (section.name, section.sh_type, section.sh_flags)
        for key in ((*kind, section.sh_addr), kind):
            left = alike[key]
            while left and left[-1] in taken:
                left.pop()
            if left:
                pairs[old_index] = left.pop()
                taken.add(pairs[old_index])
                break
    return pairs


def _compare_parts(section: Section, after: ElfFile) -> None:
    """Check that headers of the same name describe every byte of a section that may have holes."""
    if section in after.sections:
        return
    position, end = section.sh_addr, section.sh_addr + section.sh_size
    named = (s for s in after.sections if s.name == section.name and position <= s.sh_addr < end)
    for part in sorted(named, key=lambda s: s.sh_addr):
        if part.sh_addr != position or part.sh_flags != section.sh_flags:
            break
        position += part.sh_size
    if position != end:
        raise VerifyError(
            f"the parts of section {section.name} do not cover it",
            place=Place(section=section.name),
            expected=f"the end at {end:#x}",
            found=f"{position:#x}",
        )


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


def _header_ranges(side: Side, after: Side) -> Iterator[AddressRange]:
    """Where headers lie in memory: they describe the file and differ by design.

    The program header table may grow up to the first thing that has not moved.
    """
    header = side.elf.header
    table_end = header.e_phoff + header.e_phnum * PHDR.size
    limit = min((start for start in _fixed_starts(side, after) if start >= table_end), default=table_end)
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


def _fixed_starts(side: Side, after: Side) -> Iterator[int]:
    """Yield the file offsets of sections that have not moved, and of what is named without a section."""
    still = {(s.name, s.sh_addr) for s in after.elf.sections if s.is_alloc}
    described = set()
    for section in side.elf.sections:
        if section.file_size:
            described.add(section.sh_offset)
            if (section.name, section.sh_addr) in still:
                yield section.sh_offset
    named = [s.p_offset for s in side.elf.segments if s.p_filesz]
    for _, tag, value in side.library.dynamic:
        offset = side.elf.offset_of(value) if tag in POINTERS else None
        if offset is not None:
            named.append(offset)
    yield from (offset for offset in named if offset not in described)


def _wrapper_ranges(before: Side, after: Side) -> Iterator[AddressRange]:
    """The words that name a container: the relocation's addend and the word itself, where it did."""
    new_parts = {address: part for part in after.library.device for address in part.wrapped}
    new_target = {wrapper.address: wrapper.target for wrapper in after.library.wrappers}
    for part in before.library.device:
        for reference in part.wrapped.values():
            target = new_target.get(reference.slot - _WORD)
            new_part: DeviceSection | None = None if target is None else new_parts.get(target)
            if target is None or new_part is None or new_part.wrapped[target].slot != reference.slot:
                raise VerifyError(f"the relocation at {reference.slot:#x} no longer names a container alone")
            yield from _addend_range(before, reference.addend_offset)
            yield _slot_range(before, after, reference.slot, reference.target, target)


def _addend_range(side: Side, offset: int | None) -> Iterator[AddressRange]:
    if offset is None:
        return
    for load in side.elf.loads:
        if load.p_offset <= offset < load.file_end:
            address = offset - load.p_offset + load.p_vaddr
            yield AddressRange(address, address + _WORD)


def _slot_range(before: Side, after: Side, slot: int, old_target: int, new_target: int) -> AddressRange:
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


def _dynamic_ranges(before: Side, after: Side) -> Iterator[AddressRange]:
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
    """Program headers other than PT_LOAD and PT_PHDR say the same; notes and PT_INTERP may have moved."""
    movable = (SegmentType.NOTE, SegmentType.GNU_PROPERTY, SegmentType.INTERP)
    passed = (SegmentType.LOAD, SegmentType.PHDR)
    olds = [s for s in before.segments if s.p_type not in passed]
    news = [s for s in after.segments if s.p_type not in passed]
    for old, new in zip_longest(olds, news):
        if old is None or new is None:
            raise VerifyError("the program headers differ in number")
        expected = old._replace(p_offset=new.p_offset)
        if old.p_type in movable and new.p_vaddr != old.p_vaddr:
            home = next((s for s in after.sections if s.is_alloc and s.sh_addr == new.p_vaddr), None)
            was = next((s for s in before.sections if s.is_alloc and s.sh_addr == old.p_vaddr), None)
            if home is None or was is None or (home.name, home.sh_type) != (was.name, was.sh_type):
                raise VerifyError(
                    f"program header of type {old.p_type:#x} leads nowhere", found=f"{new.p_vaddr:#x}"
                )
            expected = expected._replace(p_vaddr=new.p_vaddr, p_paddr=new.p_paddr)
        if new != expected:
            raise VerifyError(f"program header of type {old.p_type:#x} differs", found=str(new))
        if new.p_filesz and after.offset_of(new.p_vaddr, new.p_filesz) != new.p_offset:
            raise VerifyError(f"program header of type {old.p_type:#x} names the wrong file offset")
