"""Section names from a part of a file; readelf and the whole file are the judges."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import fatbin
from builders.library import CudaLibrary
from corpus.recipes import RECIPES
from judges import readelf
from wheelslim.elf.glance import MARGIN, naming_part, section_names

if TYPE_CHECKING:
    from pathlib import Path


def names_of(data: bytes) -> frozenset[bytes] | None:
    place = naming_part(data[:64], len(data))
    if place is None:
        return None
    start, size = place
    return section_names(data[:64], start, data[start : start + size])


@pytest.mark.parametrize("name", [recipe.name for recipe in RECIPES])
def test_the_names_are_those_that_readelf_lists(name: str, corpus: object) -> None:
    path: Path = corpus(name)  # type: ignore[operator]
    found = names_of(path.read_bytes())
    assert found is not None
    assert {one.decode() for one in found} == {one.name for one in readelf.sound(path).sections} | {""}


def test_names_far_from_the_headers_are_not_found() -> None:
    data = CudaLibrary((fatbin.container(["sm_80"]),)).build().data
    assert b".nv_fatbin" in (names_of(data) or ())
    shoff, count, strings = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
    table = data[shoff : shoff + 64 * count]
    far = bytearray(data + bytes(MARGIN + 8) + table)
    struct.pack_into("<Q", far, 40, len(data) + MARGIN + 8)
    assert names_of(bytes(far)) is None
    assert strings == count - 1


@pytest.mark.parametrize("shnum", [0, 1 << 15])
def test_unusual_numbers_of_sections_are_not_guessed(shnum: int) -> None:
    data = bytearray(CudaLibrary((fatbin.container(["sm_80"]),)).build().data)
    struct.pack_into("<H", data, 60, shnum)
    assert names_of(bytes(data)) is None


@given(st.binary(min_size=24, max_size=24), st.binary(max_size=300))
def test_any_header_gives_names_or_nothing(fields: bytes, rest: bytes) -> None:
    head = b"\x7fELF\x02\x01\x01".ljust(40, b"\0") + fields
    data = head + rest
    found = names_of(data)
    assert found is None or all(name in data for name in found)
