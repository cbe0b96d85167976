"""The map from the original file to the new one, against a model that really cuts bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.sources import source_of
from wheelslim.elf.filemap import FileMap, Gap, Overlay
from wheelslim.pieces import Copy, Data, Zeros, stream, total_size

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from wheelslim.pieces import Piece

ORIGINAL = bytes(range(1, 251))


@st.composite
def disjoint(draw: DrawFn, *, touching: bool) -> list[tuple[int, int]]:
    """Ranges inside ORIGINAL, ascending; neighbours may touch."""
    borders = sorted(draw(st.lists(st.integers(0, len(ORIGINAL)), max_size=12, unique=not touching)))
    return [(a, b) for a, b in zip(borders[::2], borders[1::2], strict=False) if a < b]


@st.composite
def overlays(draw: DrawFn) -> list[Overlay]:
    found = []
    for start, end in draw(disjoint(touching=True)):
        pieces: list[Piece] = []
        left = end - start
        while left:
            size = draw(st.integers(1, left))
            kind = draw(st.sampled_from(["copy", "data", "zeros"]))
            if kind == "copy":
                pieces.append(Copy(draw(st.integers(0, len(ORIGINAL) - size)), size))
            elif kind == "data":
                pieces.append(Data(draw(st.binary(min_size=size, max_size=size))))
            else:
                pieces.append(Zeros(size))
            left -= size
        found.append(Overlay(start, tuple(pieces)))
    return draw(st.permutations(found))


def model(gaps: list[tuple[int, int]], changes: list[Overlay]) -> bytes:
    """Write the overlays over a copy, then cut the gaps out of it."""
    data = bytearray(ORIGINAL)
    for overlay in changes:
        position = overlay.offset
        for piece in overlay.pieces:
            if isinstance(piece, Copy):
                new = ORIGINAL[piece.offset : piece.offset + piece.size]
            else:
                new = piece.data if isinstance(piece, Data) else bytes(piece.size)
            data[position : position + len(new)] = new
            position += len(new)
    for start, end in reversed(gaps):
        del data[start:end]
    return bytes(data)


@given(gaps=disjoint(touching=True), changes=overlays())
def test_pieces_give_the_bytes_of_the_model(gaps: list[tuple[int, int]], changes: list[Overlay]) -> None:
    filemap = FileMap(len(ORIGINAL), [Gap(*gap) for gap in reversed(gaps)])
    pieces = filemap.pieces(changes)
    expected = model(gaps, changes)
    with source_of(ORIGINAL, before=b"\xff" * 7, after=b"\xff") as source:
        assert b"".join(stream(pieces, source, block=16)) == expected
    assert filemap.new_size == total_size(pieces) == len(expected)
    assert all(piece.size for piece in pieces)


@given(gaps=disjoint(touching=True), offset=st.integers(0, len(ORIGINAL)))
def test_an_offset_moves_by_what_is_cut_before_it(gaps: list[tuple[int, int]], offset: int) -> None:
    filemap = FileMap(len(ORIGINAL), [Gap(*gap) for gap in gaps])
    kept_before = sum(not any(a <= at < b for a, b in gaps) for at in range(offset))
    assert filemap.new_offset(offset) == kept_before


def test_neighbouring_copies_and_zeros_become_one_piece() -> None:
    filemap = FileMap(100, [Gap(40, 60)])
    changes = [Overlay(10, (Copy(10, 5),)), Overlay(30, (Zeros(10),)), Overlay(60, (Zeros(4), Zeros(1)))]
    assert filemap.pieces(changes) == [Copy(0, 30), Zeros(15), Copy(65, 35)]


def test_overlays_that_overlap_are_a_bug_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="meet at 0x4"):
        FileMap(10, []).pieces([Overlay(0, (Zeros(5),)), Overlay(4, (Zeros(1),))])
