"""Who points at an address: RELATIVE and RELR relocations, and dynamic symbols.

Relocation tables reach 350,000 entries, so they are swept (``elf.tables``).
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from wheelslim.elf.layout import RELA, RELATIVE, SYM, DynamicTag, SectionType
from wheelslim.elf.reader import read_dynamic
from wheelslim.elf.tables import blocks, words
from wheelslim.errors import ElfFormatError, Place

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from wheelslim.elf.model import ElfFile
    from wheelslim.source import Source

_WORD = 8
_ADDEND = 16
_RELR_BITS = 63
_SYMBOL_SHIFT = 32
_WINDOW = 1 << 16

MAX_RELR = 1 << 21
"""Of other relocations, 350,000 is the largest count that was measured."""

_OTHER_TABLES = frozenset({17, 0x6000000F, 0x60000011, 0x6FFFE000})
"""DT_REL, which no 64-bit machine here uses, and Android's packed tables (bionic's elf.h)."""


class Reference(NamedTuple):
    """A word in memory that will hold an address.

    ``slot`` is the word's virtual address, ``target`` the (unrelocated) address that it names,
    ``addend_offset`` the file offset of the relocation's addend, or None for RELR, where the word in
    the file is the address itself.
    """

    slot: int
    target: int
    addend_offset: int | None


def find_references(source: Source, elf: ElfFile, ranges: tuple[tuple[int, int], ...]) -> list[Reference]:
    """Return all relative references into any of ``ranges``: half-open virtual address ranges, sorted.

    Raises:
        ElfFormatError: a relocation table lies outside the file bytes of the segments, or is of a kind
            that is not read here.
    """
    if not ranges:
        return []
    tags = {tag: value for _, tag, value in read_dynamic(source, elf)}
    for tag in _OTHER_TABLES & tags.keys():
        raise ElfFormatError("relocations of a kind that is not understood", found=f"dynamic tag {tag:#x}")
    found = list(_rela(source, elf, tags, ranges))
    found.extend(_relr(source, elf, tags, ranges))
    return found


def _rela(
    source: Source, elf: ElfFile, tags: dict[int, int], ranges: tuple[tuple[int, int], ...]
) -> Iterator[Reference]:
    relative = RELATIVE.get(elf.header.e_machine)
    low, high = ranges[0][0], ranges[-1][1]
    for offset, table in _rela_tables(source, elf, tags):
        for index, addend in enumerate(table[2::3]):
            if low <= addend < high and _within(addend, ranges):
                slot, info = table[3 * index], table[3 * index + 1]
                if info == relative:
                    yield Reference(slot, addend, offset + index * RELA.size + _ADDEND)


def _relr(
    source: Source, elf: ElfFile, tags: dict[int, int], ranges: tuple[tuple[int, int], ...]
) -> Iterator[Reference]:
    address, size = tags.get(DynamicTag.RELR), tags.get(DynamicTag.RELRSZ, 0)
    if address is None or not size:
        return
    start, window = 0, b""
    for slot in sorted(_relr_slots(source, elf, address, size)):
        if not 0 <= slot - start <= len(window) - _WORD:
            start, window = slot, _memory(source, elf, slot)
        target = int.from_bytes(window[slot - start : slot - start + _WORD], "little")
        if window and _within(target, ranges):
            yield Reference(slot, target, None)


def _relr_slots(source: Source, elf: ElfFile, address: int, size: int) -> list[int]:
    table = words(source.read(_table(elf, address, size, "DT_RELR"), size - size % _WORD))
    slots = list(islice(relr_slots(table), MAX_RELR + 1))
    if len(slots) > MAX_RELR:
        raise ElfFormatError("too many RELR relocations", expected=f"at most {MAX_RELR}", found="more")
    return slots


def _memory(source: Source, elf: ElfFile, address: int) -> bytes:
    """Return up to 64 KiB of the file from a virtual address on; nothing where no word is mapped."""
    load = elf.load_at(address, _WORD)
    if load is None:
        return b""
    start = address - load.p_vaddr
    return source.read(load.p_offset + start, min(load.p_filesz - start, _WINDOW))


def relr_slots(table: array[int]) -> Iterator[int]:
    """Decode a RELR table (generic ABI proposal of 2018): addresses, and bitmaps of the 63 words after."""
    where = 0
    for entry in table:
        if not entry & 1:
            yield entry
            where = entry + _WORD
        else:
            bits = entry >> 1
            position = where
            while bits:
                if bits & 1:
                    yield position
                bits >>= 1
                position += _WORD
            where += _RELR_BITS * _WORD


def symbol_addresses(source: Source, elf: ElfFile, ranges: tuple[tuple[int, int], ...]) -> set[int]:
    """Return the addresses inside ``ranges`` that dynamic symbols name, alone or with an addend.

    Raises:
        ElfFormatError: no section header describes the symbols that the loader reads, so nobody knows how
            many there are.
    """
    named: dict[int, int] = {}
    tables = [s for s in elf.sections if s.sh_type == SectionType.DYNSYM and s.sh_entsize == SYM.size]
    used = next((value for _, tag, value in read_dynamic(source, elf) if tag == DynamicTag.SYMTAB), None)
    if used is not None and used not in {section.sh_addr for section in tables}:
        raise ElfFormatError(
            "no section header describes the dynamic symbols",
            expected=f"a .dynsym with entries of {SYM.size} bytes at {used:#x}",
            found="none",
        )
    for section in tables:
        first = 0
        for table in blocks(source, section.sh_offset, section.sh_size, SYM.size):
            values = table[1::3]
            named.update((first + i, value) for i, value in enumerate(values) if _within(value, ranges))
            first += len(values)
    found = set(named.values())
    if named:
        found.update(address for address in _with_addend(source, elf, named) if _within(address, ranges))
    return found


def _with_addend(source: Source, elf: ElfFile, named: dict[int, int]) -> Iterator[int]:
    tags = {tag: value for _, tag, value in read_dynamic(source, elf)}
    for _, table in _rela_tables(source, elf, tags):
        for index, info in enumerate(table[1::3]):
            if info >> _SYMBOL_SHIFT in named:
                yield (named[info >> _SYMBOL_SHIFT] + table[3 * index + 2]) % (1 << 64)


def written_addresses(source: Source, elf: ElfFile, ranges: tuple[tuple[int, int], ...]) -> list[int]:
    """Return the addresses inside ``ranges``, sorted, that the loader writes to for a relocation.

    Raises:
        ElfFormatError: a relocation table lies outside the file bytes of the segments.
    """
    if not ranges:
        return []
    low, high = ranges[0][0] - _WORD, ranges[-1][1]
    slots: list[int] = []
    tags = {tag: value for _, tag, value in read_dynamic(source, elf)}
    for _, table in _rela_tables(source, elf, tags):
        slots.extend(slot for slot in table[0::3] if low < slot < high)
    if (address := tags.get(DynamicTag.RELR)) is not None:
        slots.extend(_relr_slots(source, elf, address, tags.get(DynamicTag.RELRSZ, 0)))
    return sorted(slot for slot in slots if _within(slot, ranges) or _within(slot + _WORD - 1, ranges))


def _rela_tables(source: Source, elf: ElfFile, tags: dict[int, int]) -> Iterator[tuple[int, array[int]]]:
    """Yield the tables of relocations with addends in blocks: file offset, words."""
    for tag, size_tag in ((DynamicTag.RELA, DynamicTag.RELASZ), (DynamicTag.JMPREL, DynamicTag.PLTRELSZ)):
        address, size = tags.get(tag), tags.get(size_tag, 0)
        if address is None or not size:
            continue
        offset = _table(elf, address, size, f"DT_{tag.name}")
        for table in blocks(source, offset, size, RELA.size):
            yield offset, table
            offset += len(table) * _WORD


def _within(address: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    """Whether one of the sorted, disjoint ranges holds the address."""
    index = bisect_right(ranges, address, key=_start)
    return index > 0 and address < ranges[index - 1][1]


def _start(one: tuple[int, int]) -> int:
    return one[0]


def _table(elf: ElfFile, address: int, size: int, what: str) -> int:
    offset = elf.offset_of(address, size)
    if offset is None:
        raise ElfFormatError(
            f"the {what} table lies outside the segments",
            place=Place(offset=address),
            expected=f"{size} bytes of a PT_LOAD",
            found=f"address {address:#x}",
        )
    return offset
