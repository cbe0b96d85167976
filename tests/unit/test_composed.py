"""New content, read at random and streamed: two ways to the same bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.sources import source_of
from wheelslim.composed import Composed
from wheelslim.errors import ArtifactError
from wheelslim.pieces import Copy, Data, Piece, Spool, Zeros, stream

ORIGINAL = bytes(range(256)) * 4
OTHER = b"spooled bytes, which lie in another file"

pieces = st.lists(
    st.one_of(
        st.builds(
            lambda start, size: Copy(start, min(size, 1024 - start)), st.integers(0, 1024), st.integers(0, 99)
        ),
        st.builds(Data, st.binary(max_size=40)),
        st.builds(Zeros, st.integers(0, 50)),
        st.builds(lambda start: (start, len(OTHER) - start), st.integers(0, len(OTHER))),
    ),
    max_size=12,
)


@given(pieces, st.data())
def test_every_range_is_that_of_the_stream(
    described: list[Piece | tuple[int, int]], data: st.DataObject
) -> None:
    with source_of(ORIGINAL) as original, source_of(OTHER) as other:
        made = [Spool(other, *one) if isinstance(one, tuple) else one for one in described]
        whole = b"".join(stream(made, original, 64))
        content = Composed.of(made, original)
        assert content.size == len(whole)
        start = data.draw(st.integers(0, len(whole)))
        size = data.draw(st.integers(0, len(whole) - start))
        assert content.read(start, size) == whole[start : start + size]
        part = content.part(start, size)
        assert (part.size, b"".join(part.blocks(block=7))) == (size, whole[start : start + size])
        inner = data.draw(st.integers(0, size))
        assert part.part(inner, size - inner).read(0, size - inner) == whole[start + inner : start + size]


def test_ranges_outside_are_errors() -> None:
    with source_of(ORIGINAL) as original:
        content = Composed.of([Copy(0, 10), Zeros(5)], original)
        for offset, size in ((0, 16), (15, 1), (-1, 2), (3, -1)):
            with pytest.raises(ArtifactError, match="passes the end"):
                content.read(offset, size)
            with pytest.raises(ArtifactError, match="passes the end"):
                content.part(offset, size)
        with pytest.raises(ArtifactError, match="passes the end"):
            content.part(5, 5).read(4, 2)
