"""Who points at an address: RELATIVE entries, RELR words, dynamic symbols."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import elf as make
from builders.sources import source_of
from wheelslim.elf.reader import read_elf
from wheelslim.elf.references import Reference, find_references, relr_slots, symbol_addresses
from wheelslim.elf.tables import words
from wheelslim.errors import ElfFormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

X86_64, AARCH64 = 62, 183
WRITABLE = make.SHF_ALLOC | make.SHF_WRITE


def library(
    machine: int = X86_64,
    *,
    rela: Sequence[tuple[int, int, int]] = (),
    relr: Sequence[int] = (),
    data: bytes = bytes(64),
    symbols: Sequence[int] = (),
    rela_address: int | None = None,
) -> tuple[bytes, make.Layout]:
    """A library whose ``.data`` slots ``rela`` names as (offset in .data, type, addend)."""

    def fill_rela(layout: make.Layout) -> bytes:
        return b"".join(
            make.RELA.pack(layout.address[".data"] + slot, info, addend) for slot, info, addend in rela
        )

    def fill_relr(layout: make.Layout) -> bytes:
        return make.relr([layout.address[".data"] + slot for slot in relr])

    def fill_dynamic(layout: make.Layout) -> bytes:
        at = layout.address[".rela.dyn"] if rela_address is None else rela_address
        tags = [(7, at), (8, layout.size[".rela.dyn"])] if rela else []
        tags += [(36, layout.address[".relr.dyn"]), (35, layout.size[".relr.dyn"])] if relr else []
        return b"".join(struct.pack("<qQ", *pair) for pair in [*tags, (0, 0)])

    relr_size = len(make.relr([0x10000 + slot for slot in relr]))
    table = make.SYM.pack(0, 0, 0, 0, 0, 0) + b"".join(
        make.SYM.pack(0, 0x11, 0, 1, value, 8) for value in symbols
    )
    return make.Image(
        machine,
        (
            make.Segment(
                make.PF_R,
                (
                    make.Section(".dynsym", len(table), table, make.SHT_DYNSYM, entsize=24),
                    make.Section(".rela.dyn", 24 * len(rela), fill_rela, make.SHT_RELA, entsize=24),
                    make.Section(".relr.dyn", relr_size, fill_relr, make.SHT_RELR, entsize=8),
                ),
            ),
            make.Segment(
                make.PF_R | make.PF_W,
                (
                    make.Section(".dynamic", 96, fill_dynamic, make.SHT_DYNAMIC, WRITABLE, entsize=16),
                    make.Section(".data", len(data), data, flags=WRITABLE, align=8),
                ),
            ),
        ),
        0x1000,
        0x1000,
        extra=((make.PT_DYNAMIC, make.PF_R, ".dynamic", 8),),
    ).build()


def references(data: bytes, *ranges: tuple[int, int]) -> list[Reference]:
    with source_of(data) as source:
        return find_references(source, read_elf(source), ranges)


@pytest.mark.parametrize(("machine", "relative"), [(X86_64, 8), (AARCH64, 1027)])
def test_relative_entries_into_a_range_are_found_with_the_place_of_their_addend(
    machine: int, relative: int
) -> None:
    rela = [(0, relative, 0x5000), (8, relative, 0x4FFF), (16, relative, 0x6000), (24, relative, 0x5FFF)]
    rela += [(32, 6, 0x5008), (40, relative, 0x9000)]  # R_*_GLOB_DAT and an address in the second range
    data, layout = library(machine, rela=rela)
    start, table = layout.address[".data"], layout.offset[".rela.dyn"]
    assert references(data, (0x5000, 0x6000), (0x9000, 0x9001)) == [
        Reference(start, 0x5000, table + 16),
        Reference(start + 24, 0x5FFF, table + 3 * 24 + 16),
        Reference(start + 40, 0x9000, table + 5 * 24 + 16),
    ]
    assert references(data) == []


def test_relr_slots_hold_the_address_itself() -> None:
    values = [0x5000, 0x4000, 0x5008, 0x5010]
    data, layout = library(relr=[0, 8, 24], data=struct.pack("<4Q", *values))
    start = layout.address[".data"]
    found = references(data, (0x5000, 0x6000))
    assert found == [Reference(start, 0x5000, None), Reference(start + 24, 0x5010, None)]


def test_a_relocation_table_outside_the_file_is_an_error() -> None:
    data, _ = library(rela=[(0, 8, 0x5000)], rela_address=0x7000_0000)
    with pytest.raises(ElfFormatError, match="DT_RELA table lies outside"):
        references(data, (0x5000, 0x6000))


def test_many_relocations_are_all_seen() -> None:
    count = 150_000
    rela = [(0, 8, 0x100_0000 + index) for index in range(count)]
    data, _ = library(rela=rela)
    found = references(data, (0x100_0000, 0x100_0000 + count))
    assert [reference.target for reference in found] == [addend for _, _, addend in rela]


@given(st.sets(st.integers(0, 2000).map(lambda n: 0x7000 + 8 * n)))
def test_relr_decoding_inverts_encoding(places: set[int]) -> None:
    encoded = words(make.relr(sorted(places)))
    assert sorted(relr_slots(encoded)) == sorted(places)


def test_dynamic_symbols_inside_a_range_are_addresses_that_others_may_know() -> None:
    data, _ = library(symbols=[0x5000, 0x4FFF, 0x5FFF, 0x6000, 0x9000])
    with source_of(data) as source:
        elf = read_elf(source)
        assert symbol_addresses(source, elf, ((0x5000, 0x6000), (0x9000, 0x9008))) == {0x5000, 0x5FFF, 0x9000}


@pytest.mark.parametrize(
    ("addend", "reached"), [(0, {0x5000}), (0x800, {0x5000, 0x5800}), (-1, {0x5000}), (0x1000, {0x5000})]
)
def test_a_symbol_with_an_addend_names_another_address(addend: int, reached: set[int]) -> None:
    rela = [(0, 1 << 32 | 1, addend), (8, 2 << 32 | 1, 0x123)]
    data, _ = library(rela=rela, symbols=[0x5000, 0x9000])
    with source_of(data) as source:
        assert symbol_addresses(source, read_elf(source), ((0x5000, 0x6000),)) == reached


@pytest.mark.parametrize("tag", [17, 0x6000000F, 0x60000011, 0x6FFFE000])
def test_relocations_of_another_kind_are_not_taken_for_none(tag: int) -> None:
    data, layout = library(rela=[(0, 8, 0x5000)])
    changed = bytearray(data)
    struct.pack_into("<q", changed, layout.offset[".dynamic"] + 32, tag)
    with pytest.raises(ElfFormatError, match=f"found dynamic tag {tag:#x}"):
        references(bytes(changed), (0x5000, 0x6000))
