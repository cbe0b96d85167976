"""Payloads come out as they went in; headers that lie are refused before memory is spent on them."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import lz4.block
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from builders import fatbin as build
from builders.sources import source_of
from corpus.recipes import LIBRARIES
from wheelslim.errors import FatbinFormatError
from wheelslim.fatbin.payload import compress, read_payload
from wheelslim.fatbin.reader import read_container
from wheelslim.library import read_library
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.fatbin.model import Entry


AT = 24


@contextmanager
def only_entry(made: build.Entry) -> Iterator[tuple[Source, Entry]]:
    with source_of(b"\xaa" * AT + build.container([made]), before=b"\xbb" * 3) as source:
        yield source, read_container(source, AT).entries[0]


def payload_of(made: build.Entry, limit: int = 1 << 30) -> bytes:
    with only_entry(made) as (source, entry):
        return read_payload(source, entry, limit)


def zstd_entry(payload: bytes, plain_size: int) -> build.Entry:
    flags = build.LINUX_64 | build.ZSTD
    return build.Entry(payload, flags=flags, compressed_size=len(payload), uncompressed_size=plain_size)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_payload_comes_out_as_it_went_in(codec: str) -> None:
    plain = build.entry("sm_86", size=5000)
    assert payload_of(build.compressed(plain, codec)) == plain.payload


def test_a_plain_payload_comes_with_its_padding() -> None:
    assert payload_of(build.Entry(b"\x7fELF plain")) == b"\x7fELF plain".ljust(16, b"\0")


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("off_by", [-1, 1, 7])
def test_a_plain_size_that_is_wrong_is_refused(codec: str, off_by: int) -> None:
    made = build.compressed(build.entry("sm_86", size=5000), codec)
    with pytest.raises(FatbinFormatError, match=r"5000|decompress"):
        payload_of(replace(made, uncompressed_size=5000 + off_by))


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_cut_payload_is_refused(codec: str) -> None:
    made = build.compressed(build.entry("sm_86", size=5000), codec)
    with pytest.raises(FatbinFormatError, match="decompress"):
        payload_of(replace(made, payload=made.payload[:-9], compressed_size=made.compressed_size - 9))


def test_a_second_frame_is_no_payload() -> None:
    with pytest.raises(FatbinFormatError):
        payload_of(zstd_entry(zstandard.compress(b"a" * 100) * 2, 100))


def test_a_frame_that_does_not_name_its_size_is_read() -> None:
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(b"kernel" * 50)
    assert payload_of(zstd_entry(frame, 300)) == b"kernel" * 50


def test_bombs_are_refused_by_what_their_headers_say() -> None:
    with pytest.raises(FatbinFormatError, match="too large"):
        payload_of(zstd_entry(zstandard.compress(bytes(1 << 20)), 1 << 20), limit=1 << 19)
    # A single-segment frame with an 8-byte content size that claims 2**60 bytes.
    frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 60) + b"\x01\x00\x00"
    with pytest.raises(FatbinFormatError, match=str(1 << 60)):
        payload_of(zstd_entry(frame, 100))
    small = lz4.block.compress(b"x" * 10, store_size=False)
    made = build.Entry(small, flags=build.LINUX_64 | build.LZ4, compressed_size=len(small))
    with pytest.raises(FatbinFormatError, match="cannot hold"):
        payload_of(replace(made, uncompressed_size=1 << 30))


def test_an_obfuscated_payload_is_not_read() -> None:
    made = build.compressed(build.entry("lto_86", size=500), "zstd")
    with pytest.raises(FatbinFormatError, match="obfuscated"):
        payload_of(replace(made, flags=made.flags | build.OBFUSCATED))


@given(st.binary(min_size=1, max_size=300), st.sampled_from([build.ZSTD, build.LZ4]), st.integers(0, 1 << 17))
def test_any_bytes_give_a_payload_or_an_error(stored: bytes, flag: int, plain_size: int) -> None:
    flags = build.LINUX_64 | flag
    made = build.Entry(stored, flags=flags, compressed_size=len(stored), uncompressed_size=plain_size)
    try:
        assert len(payload_of(made, limit=1 << 16)) == plain_size
    except FatbinFormatError as error:
        assert error.place.offset == AT + 16


@pytest.mark.parametrize("name", ["zstd", "many_containers"])
def test_nvcc_for_size_compresses_as_we_do(name: str) -> None:
    """The payloads of nvcc's zstd entries, compressed again, give nvcc's bytes."""
    with (LIBRARIES / f"{name}.so").open("rb") as file:
        source = Source.of_file(file.fileno())
        compared = 0
        for part in read_library(source).device:
            section = source.part(part.section.sh_offset, part.section.sh_size)
            for entry in (e for c in part.tiling.containers for e in c.entries if e.flags & build.ZSTD):
                stored = section.read(entry.payload_offset, entry.payload_size)
                assert compress(read_payload(section, entry)) == stored
                compared += 1
        assert compared
