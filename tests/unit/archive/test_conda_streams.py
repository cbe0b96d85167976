"""Compressed streams, the thread that reads ahead, and what counts and writes along the way."""

from __future__ import annotations

import bz2
import itertools
import json
import os
import threading
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from wheelslim.archive.block_reader import BlockReader
from wheelslim.archive.compressed import Codec, compressor, decompressed
from wheelslim.archive.json_style import read_json
from wheelslim.archive.placeholder import OccurrenceCounter
from wheelslim.archive.read_ahead import read_ahead
from wheelslim.errors import ArchiveError
from wheelslim.source import BLOCK, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = b"".join(bytes([number % 251]) * (number % 1000) for number in range(6000))


def unpacked(path: Path, data: bytes, codec: Codec) -> list[bytes]:
    path.write_bytes(data)
    with path.open("rb") as file:
        return list(decompressed(Source.of_file(file.fileno()), codec))


def test_several_frames_and_streams_are_one(tmp_path: Path) -> None:
    pack = zstandard.ZstdCompressor().compress
    skippable = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"xyz"
    frames = pack(DATA) + skippable + pack(b"") + pack(b"end")
    assert b"".join(unpacked(tmp_path / "a", frames, Codec.ZSTD)) == DATA + b"end"
    streams = bz2.compress(DATA) + bz2.compress(b"end")
    assert b"".join(unpacked(tmp_path / "b", streams, Codec.BZIP2)) == DATA + b"end"


@pytest.mark.parametrize("codec", list(Codec))
def test_a_bomb_comes_in_small_blocks(tmp_path: Path, codec: Codec) -> None:
    zeros = bytes(20 << 20)
    data = zstandard.ZstdCompressor().compress(zeros) if codec is Codec.ZSTD else bz2.compress(zeros)
    assert len(data) < 100_000
    blocks = unpacked(tmp_path / "a", data, codec)
    assert sum(map(len, blocks)) == len(zeros)
    assert max(map(len, blocks)) <= BLOCK


@pytest.mark.parametrize("step", [1000, 65_536, 1 << 22])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_compressed_bytes_depend_on_neither_steps_nor_threads(step: int, threads: int) -> None:
    data = (DATA + os.urandom(100_000)) * 4

    def pack(step: int, threads: int) -> bytes:
        packer = compressor(Codec.ZSTD, 3, threads, len(data))
        parts = [packer.compress(data[at : at + step]) for at in range(0, len(data), step)]
        return b"".join([*parts, packer.flush()])

    data = data[: 20 << 20]
    packed = pack(step, threads)
    assert zstandard.get_frame_parameters(packed).content_size == len(data)
    assert zstandard.ZstdDecompressor().decompress(packed) == data
    assert pack(1 << 20, 1)[8:] == packed[8:]


def test_read_ahead_hands_over_everything_and_then_the_error() -> None:
    def produce() -> Iterator[bytes]:
        yield from (b"%d" % number for number in range(20))
        raise ArchiveError("broken")

    seen: list[bytes] = []
    with pytest.raises(ArchiveError, match="broken"), read_ahead(produce()) as blocks:
        seen.extend(blocks)
    assert seen == [b"%d" % number for number in range(20)]


def test_read_ahead_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    made = []

    def produce() -> Iterator[bytes]:
        while True:
            made.append(1)
            yield b"x"

    with read_ahead(produce()) as blocks:
        assert next(blocks) == b"x"
    assert threading.active_count() == before
    assert len(made) < 20


@given(st.lists(st.binary(max_size=9)), st.lists(st.integers(0, 20)))
def test_a_block_reader_cuts_anywhere(blocks: list[bytes], sizes: list[int]) -> None:
    reader, whole = BlockReader(iter(blocks)), b"".join(blocks)
    position = 0
    for size in sizes:
        assert reader.read(size) == whole[position : position + size]
        position = min(len(whole), position + size)
        assert reader.position == position
    assert b"".join(reader.rest()) == whole[position:]


@given(st.text("ab", min_size=1, max_size=4), st.text("ab"), st.lists(st.integers(0, 40)))
def test_occurrences_are_counted_as_in_one_piece(pattern: str, text: str, cuts: list[int]) -> None:
    counter = OccurrenceCounter(pattern.encode())
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, end in itertools.pairwise(edges):
        counter.feed(text[start:end].encode())
    assert counter.count == text.count(pattern)


DOCUMENT = {"paths": [{"_path": "größe", "n": 1, "list": [], "t": True}], "paths_version": 1}
STYLES = {
    "conda-build": json.dumps(DOCUMENT, indent=2, sort_keys=True, separators=(",", ": ")),
    "rattler-build": json.dumps(DOCUMENT, indent=2, ensure_ascii=False),
    "one line": json.dumps(DOCUMENT),
    "compact": json.dumps(DOCUMENT, separators=(",", ":")),
    "Python 2": json.dumps(DOCUMENT, indent=2, separators=(", ", ": ")),
    "four spaces and a line feed": json.dumps(DOCUMENT, indent=4) + "\n",
    "tabs": json.dumps(DOCUMENT, indent="\t"),
}


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_json_keeps_its_style(text: str) -> None:
    value, style = read_json(text.encode(), "a.json")
    assert value == DOCUMENT
    assert style.write(value) == text.encode()
