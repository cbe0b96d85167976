"""Containers and entries, from bytes that a builder made, that nvcc made, and that are broken."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import fatbin as make
from builders import strategies
from builders.sources import source_of
from corpus.recipes import PARTS
from wheelslim.errors import FatbinFormatError
from wheelslim.fatbin.model import Compression, Container, Tiling
from wheelslim.fatbin.reader import read_container, read_tiling

if TYPE_CHECKING:
    from collections.abc import Sequence

ADDRESS = 0x40_0000


def tiling(data: bytes, address: int = ADDRESS) -> Tiling:
    with source_of(data, before=b"\xaa" * 5, after=b"\xaa" * 9) as source:
        return read_tiling(source, address)


def container(data: bytes, offset: int = 0) -> Container:
    with source_of(data, after=b"\xaa") as source:
        return read_container(source, offset)


@given(strategies.sections(odd=True))
def test_every_field_comes_back(contents: Sequence[Sequence[make.Entry]]) -> None:
    data, offsets = make.section([make.container(entries) for entries in contents])
    found = tiling(data)
    assert [c.offset for c in found.containers] == list(offsets)
    for entries, one in zip(contents, found.containers, strict=True):
        assert one.size == 16 + sum(entry.header_size + entry.padded_size for entry in entries)
        for made, read in zip(entries, one.entries, strict=True):
            assert (read.kind, read.sm, read.flags) == (made.kind, made.sm, made.flags)
            assert (read.header_size, read.padded_size) == (made.header_size, made.padded_size)
            assert read.version == (made.version[1], made.version[0])
            stored = data[read.payload_offset : read.payload_offset + read.payload_size]
            if made.compressed_size:
                assert stored == made.payload
            else:
                assert stored[: len(made.payload)] == made.payload
                assert not stored[len(made.payload) :].strip(b"\0")


@given(st.data())
def test_damaged_bytes_give_a_result_or_an_error_of_ours(data: st.DataObject) -> None:
    raw = bytearray(make.section([make.container(["sm_80", "compute_90"]), make.container(["sm_90a"])])[0])
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=6)):
        raw[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)) | st.just(len(raw)))
    try:
        found = tiling(bytes(raw[:cut]))
    except FatbinFormatError:
        return
    end = 0
    for one in found.containers:
        assert one.offset >= end
        assert not any(raw[end : one.offset])
        end = one.end
    assert end <= cut


@given(st.binary(max_size=200))
def test_noise_is_no_section_of_containers(noise: bytes) -> None:
    if noise.strip(b"\0"):
        with pytest.raises(FatbinFormatError):
            tiling(noise.replace(b"\x50\xed\x55\xba", b"\x50\xed\x55\xbb"))
    else:
        assert tiling(noise).containers == ()


@pytest.mark.parametrize(
    ("flags", "compressed_size", "expected"),
    [
        (0x11, 0, Compression.NONE),
        (0x11 | make.ZSTD, 0, Compression.NONE),
        (0x11 | make.ZSTD, 12, Compression.ZSTD),
        (0x11 | make.LZ4, 12, Compression.LZ4),
        (0x11, 12, Compression.LZ4),
    ],
)
def test_compression_is_told_from_size_and_flags(
    flags: int, compressed_size: int, expected: Compression
) -> None:
    made = make.Entry(b"x" * 12, flags=flags, compressed_size=compressed_size, uncompressed_size=100)
    assert container(make.container([made])).entries[0].compression is expected


@pytest.mark.parametrize(
    ("entry", "label"),
    [
        (make.entry("sm_86"), "sm_86"),
        (make.entry("sm_90a"), "sm_90a"),
        (make.entry("sm_100f"), "sm_100f"),
        (make.entry("compute_120"), "compute_120"),
        (make.entry("lto_75"), "lto_75"),
        (make.Entry(b"x", sm=90, kind=make.CUBIN_VARIANT), "sm_90"),
        (make.Entry(b"x", sm=90, kind=make.RELOCATABLE_PTX), "compute_90"),
        (make.Entry(b"x", sm=100, kind=make.TILE), "tile_100"),
        (make.Entry(b"x", sm=90, kind=0x400), "kind 0x400"),
        (make.concatenated(["sm_80", "sm_90a", "sm_80"]), "sm_80+sm_90a"),
    ],
)
def test_labels(entry: make.Entry, label: str) -> None:
    assert container(make.container([entry])).entries[0].label == label


def test_a_concatenated_entry_lists_what_is_in_its_stream() -> None:
    first, second = (len(make.entry(word, size=150).payload) for word in ("sm_80", "sm_90a"))
    made = make.concatenated(["sm_80", "sm_90a"], size=150)
    subs = container(make.container([made])).entries[0].subs
    assert [(sub.offset, sub.size, sub.architecture.name) for sub in subs] == [
        (0, first, "sm_80"),
        (first, second, "sm_90a"),
    ]


def test_a_concatenated_entry_of_the_toolkit_reads_like_the_built_one() -> None:
    found = container((PARTS / "concatenated.fatbin").read_bytes())
    whole = [entry for entry in found.entries if entry.subs]
    assert len(whole) == 1
    names = [sub.architecture.name for sub in whole[0].subs]
    assert names == sorted(set(names))
    ends = [sub.offset + sub.size for sub in whole[0].subs]
    assert ends[-1] <= whole[0].plain_size
    assert all(sub.offset >= end for sub, end in zip(whole[0].subs[1:], ends, strict=False))


def test_sub_headers_of_unequal_length_are_read_one_by_one() -> None:
    """Those of sm_100 and later carry a block more; so do those with an identifier."""
    found = container((PARTS / "concatenated_suffixes.fatbin").read_bytes())
    names = [[sub.architecture.name for sub in entry.subs] for entry in found.entries]
    assert names == [["sm_80", "sm_90", "sm_90a"], ["sm_100", "sm_100a", "sm_103f", "sm_120"]]
    for entry in found.entries:
        assert sum(sub.size for sub in entry.subs) == entry.plain_size
    mixed = container(make.container([make.concatenated(["sm_80", "sm_100a", "sm_90", "sm_120"])])).entries[0]
    assert [sub.architecture.name for sub in mixed.subs] == ["sm_80", "sm_100a", "sm_90", "sm_120"]
    assert [sub.header_size for sub in mixed.subs] == [64, 80, 64, 80]


def test_a_sub_header_of_another_kind_is_not_guessed_at() -> None:
    data = bytearray(make.container([make.concatenated(["sm_80", "sm_90"])]))
    struct.pack_into("<H", data, 16 + 72 + 64, make.PTX)
    with pytest.raises(FatbinFormatError, match="no cubin"):
        container(bytes(data))


@pytest.mark.parametrize("count", [0, 5000, 3, 1])
def test_a_sub_header_table_that_does_not_fit_is_an_error(count: int) -> None:
    data = bytearray(make.container([make.concatenated(["sm_80", "sm_90"])]))
    struct.pack_into("<I", data, 16 + 64, count)
    with pytest.raises(FatbinFormatError, match="sub-header"):
        container(bytes(data))


@pytest.mark.parametrize("align", [8, 16, 256, 4096])
@pytest.mark.parametrize("address", [0, ADDRESS, ADDRESS + 8, ADDRESS + 256, ADDRESS + 8192])
def test_the_alignment_is_what_all_addresses_share(align: int, address: int) -> None:
    contents = [make.container([make.entry("sm_80", size=size)]) for size in (100, 8, 300, 1100)]
    data, offsets = make.section(contents, align=align)
    assert tiling(data, address).alignment == math.gcd(4096, *(address + offset for offset in offsets))


def test_an_empty_container_is_a_container() -> None:
    data, _ = make.section([make.container([]), make.container(["sm_90"]), make.container([])])
    assert [len(c.entries) for c in tiling(data).containers] == [0, 1, 0]


ONE = make.container(["sm_80"])


@pytest.mark.parametrize(
    ("data", "message", "offset"),
    [
        (ONE + b"\1" + bytes(7), "belongs to no container", len(ONE)),
        (ONE + bytes(4) + ONE, "not aligned", len(ONE) + 4),
        (ONE[:8], "header is cut off", 0),
        (make.container(["sm_80"], version=2), "unknown container version", 0),
        (ONE[:-8], "passes the end of its surroundings", 0),
        (ONE[:8] + struct.pack("<Q", 60) + ONE[16:76], "entry header is cut off", 16),
        (ONE[:8] + struct.pack("<Q", 72) + ONE[16:88], "passes the end of its container", 16),
        (ONE[:18] + b"\2" + ONE[19:], "unknown entry version", 16),
        (ONE[:20] + struct.pack("<I", 56) + ONE[24:], "impossible entry header size", 16),
        (ONE[:20] + struct.pack("<I", 68) + ONE[24:], "impossible entry header size", 16),
        (ONE[:24] + struct.pack("<Q", 2**63) + ONE[32:], "passes the end of its container", 16),
        (ONE[:32] + struct.pack("<I", 1 << 20) + ONE[36:], "larger than its room", 16),
    ],
)
def test_faults_are_named_with_their_place(data: bytes, message: str, offset: int) -> None:
    with pytest.raises(FatbinFormatError, match=message) as caught:
        tiling(data)
    assert caught.value.place.offset == offset


def test_a_container_is_read_where_it_stands() -> None:
    assert container(bytes(24) + ONE, 24).offset == 24
    with pytest.raises(FatbinFormatError, match="no fatbin container"):
        container(bytes(24) + ONE, 16)
