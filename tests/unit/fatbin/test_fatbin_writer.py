"""A container written with fewer entries, read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from builders import fatbin as make
from builders import strategies
from builders.sources import source_of
from wheelslim.fatbin.reader import read_tiling
from wheelslim.fatbin.writer import container_pieces
from wheelslim.pieces import Copy, stream

if TYPE_CHECKING:
    from collections.abc import Sequence

BEFORE = b"\xaa" * 40


def written(entries: Sequence[make.Entry], kept: Sequence[int]) -> bytes:
    data, offsets = make.section([make.container(["sm_75"]), make.container(entries)])
    with source_of(BEFORE + data) as source:
        section = source.part(len(BEFORE), len(data))
        container = read_tiling(section, 0).containers[1]
        assert container.offset == offsets[1]
        return b"".join(stream(container_pieces(container, kept, len(BEFORE)), source))


@given(strategies.containers(odd=True), st.data())
def test_what_is_written_is_the_container_of_the_kept_entries(
    entries: Sequence[make.Entry], data: st.DataObject
) -> None:
    indexes = st.sampled_from(range(len(entries))) if entries else st.nothing()
    kept = sorted(data.draw(st.sets(indexes)))
    assert written(entries, kept) == make.container([entries[index] for index in kept])


def test_keeping_everything_is_one_copy() -> None:
    data = make.container(["sm_80", "sm_90", "compute_90"])
    with source_of(data) as source:
        container = read_tiling(source, 0).containers[0]
    assert container_pieces(container, (0, 1, 2), 100) == [Copy(100, len(data))]


def test_an_emptied_container_is_a_header_of_16_bytes() -> None:
    assert written([make.entry("sm_80")], []) == bytes.fromhex("50ed55ba 0100 1000 0000000000000000")
