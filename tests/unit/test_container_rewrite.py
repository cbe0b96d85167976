"""Containers whose entries are stored anew, as pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders import fatbin as make
from builders.sources import source_of
from wheelslim.container_rewrite import ContainerRewriter
from wheelslim.fatbin.payload import read_payload
from wheelslim.fatbin.reader import read_container
from wheelslim.pieces import Copy, stream
from wheelslim.plan import Planner, Request
from wheelslim.spool import SpoolFile
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Sequence

BEFORE = b"\xaa" * 32


def rewritten(
    entries: Sequence[make.Entry | str], words: str, *, recompress: bool
) -> list[tuple[str, bytes]] | None:
    """Plan and rewrite a built container; gives label and plain payload of each entry of the result."""
    request = Request(parse_targets(words))
    data = BEFORE + make.container(entries)
    with source_of(data, before=b"\xbb" * 5) as source, SpoolFile() as spool:
        container = read_container(source, len(BEFORE))
        kept = Planner(request).plan(container).kept
        pieces = ContainerRewriter(request, spool, recompress).rewrite(source, container, kept)
        if pieces is None:
            return None
        result = b"".join(stream(pieces, source))
    with source_of(result) as source:
        after = read_container(source, 0)
        assert after.end == len(result)
        return [(entry.label, read_payload(source, entry)) for entry in after.entries]


def plain(word: str, size: int = 3000) -> make.Entry:
    """An entry that compresses well."""
    made = make.entry(word, size=200)
    return make.Entry(made.payload * (size // 200), made.sm, made.kind, made.flags, block=made.block)


def expected(*words: str) -> list[tuple[str, bytes]]:
    return [(word, plain(word).payload) for word in words]


def test_what_the_targets_need_of_a_concatenated_entry_stays() -> None:
    whole = make.concatenated(["sm_80", "sm_86", "sm_90", "sm_90a", "sm_120"], size=3000)
    one = {word: make.entry(word, size=3000).payload for word in ("sm_80", "sm_86", "sm_90", "sm_90a")}
    assert rewritten([whole], "sm_86", recompress=False) == [("sm_86", one["sm_86"])]
    assert rewritten([whole], "sm_86 sm_80", recompress=False) == [
        ("sm_80", one["sm_80"]),
        ("sm_86", one["sm_86"]),
    ]
    assert rewritten([whole], "sm_90", recompress=False) == [
        ("sm_90", one["sm_90"]),
        ("sm_90a", one["sm_90a"]),
    ]


def test_a_concatenated_entry_that_is_needed_whole_stays_whole() -> None:
    whole = make.concatenated(["sm_80", "sm_90"], size=3000)
    assert rewritten([whole], "sm_80 sm_90", recompress=False) is None
    assert rewritten([whole], "sm_80 sm_90", recompress=True) is None


@pytest.mark.parametrize("at", [-40, 64 + 8 + 64 + 42], ids=["broken stream", "obfuscated part"])
def test_a_concatenated_entry_that_cannot_be_taken_apart_stays_whole(at: int) -> None:
    packed = bytearray(make.concatenated(["sm_80", "sm_86"], size=3000).pack())
    packed[at] ^= 1
    request = Request(parse_targets("sm_86"))
    with source_of(make.container([bytes(packed)])) as source, SpoolFile() as spool:
        container = read_container(source, 0)
        assert ContainerRewriter(request, spool).rewrite(source, container, (0,)) is None


def test_ordinary_entries_beside_a_concatenated_one_are_copied() -> None:
    whole = make.concatenated(["sm_75", "sm_80"], size=3000)
    found = rewritten([plain("sm_90"), whole, "compute_120"], "sm_75 sm_90", recompress=False)
    assert found == [*expected("sm_90"), ("sm_75", make.entry("sm_75", size=3000).payload)]


def test_recompression_touches_only_what_is_kept() -> None:
    entries = [
        plain("sm_75"),
        make.compressed(plain("sm_86"), "lz4"),
        make.compressed(plain("sm_120"), "zstd"),
    ]
    assert rewritten(entries, "sm_86 sm_120", recompress=True) == expected("sm_86", "sm_120")
    assert rewritten(entries, "sm_120", recompress=True) is None
    assert rewritten(entries, "sm_86 sm_120", recompress=False) is None


def test_an_index_pins_the_entries() -> None:
    """It holds offsets of the entries."""
    entries = [plain("sm_86"), make.Entry(b"index", kind=make.INDEX)]
    assert rewritten(entries, "sm_86", recompress=True) is None


def test_copied_ranges_count_from_the_source_of_the_container() -> None:
    request = Request(parse_targets("sm_86 sm_90"))
    data = BEFORE + make.container([make.compressed(plain("sm_86"), "zstd"), plain("sm_90")])
    with source_of(data) as source, SpoolFile() as spool:
        container = read_container(source, len(BEFORE))
        pieces = ContainerRewriter(request, spool, recompress=True).rewrite(source, container, (0, 1))
        assert pieces is not None
        first = container.entries[0]
        assert Copy(first.offset, first.size) in pieces


@pytest.mark.parametrize("recompress", [True, False])
def test_the_same_container_gives_the_same_bytes(recompress: bool) -> None:
    entries = [plain("sm_80"), make.concatenated(["sm_75", "sm_90"], size=3000)]
    assert rewritten(entries, "sm_80 sm_90", recompress=recompress) == rewritten(
        entries, "sm_80 sm_90", recompress=recompress
    )
