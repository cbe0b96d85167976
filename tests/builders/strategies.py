"""Hypothesis strategies for entries, containers and sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from builders import fatbin

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

NUMBERS = (50, 61, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120, 121)


def words() -> SearchStrategy[str]:
    """``sm_90a``, ``compute_75``: any that nvcc could have made, and some that it could not."""
    cubins = [f"sm_{number}" for number in NUMBERS]
    cubins += [f"sm_{number}a" for number in NUMBERS if number >= 90]
    cubins += [f"sm_{number}f" for number in NUMBERS if number >= 100]
    return st.sampled_from(cubins) | st.sampled_from([f"compute_{number}" for number in NUMBERS])


def entries() -> SearchStrategy[fatbin.Entry]:
    """Entries of known kinds, plain or compressed, with payloads of unequal sizes."""
    return st.builds(
        fatbin.entry,
        words(),
        size=st.integers(120, 600),
        seed=st.integers(0, 3),
        codec=st.sampled_from([None, None, "zstd", "lz4"]),
    )


def odd_entries() -> SearchStrategy[fatbin.Entry]:
    """Entries that wheelslim must keep because it cannot know what they are."""
    unknown = st.integers(1, 0xFFFF).filter(lambda kind: kind not in {1, 2, 8, 0x10, 0x20, 0x40, 0x80, 0x100})
    return st.builds(
        fatbin.Entry,
        st.binary(min_size=8, max_size=64),
        sm=st.integers(0, 200),
        kind=unknown,
        flags=st.integers(0, 2**32 - 1),
        identifier=st.binary(max_size=20),
    )


def containers(*, odd: bool = False) -> SearchStrategy[tuple[fatbin.Entry, ...]]:
    """The entries of one container, none included."""
    one = entries() | odd_entries() if odd else entries()
    return st.lists(one, max_size=8).map(tuple)


def sections(*, odd: bool = False) -> SearchStrategy[tuple[tuple[fatbin.Entry, ...], ...]]:
    """The containers of one section, at least one."""
    return st.lists(containers(odd=odd), min_size=1, max_size=6).map(tuple)
