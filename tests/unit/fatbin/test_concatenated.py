"""Concatenated entries, taken apart."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from builders import fatbin as make
from builders.sources import source_of
from corpus.recipes import PARTS
from wheelslim.errors import FatbinFormatError
from wheelslim.fatbin.concatenated import apart, split
from wheelslim.fatbin.payload import read_payload
from wheelslim.fatbin.reader import read_container
from wheelslim.source import Source

WORDS = ["sm_80", "sm_90a", "sm_100f", "sm_120"]


def test_cubins_come_out_as_ordinary_entries() -> None:
    whole = make.concatenated(WORDS, size=4000)
    with source_of(make.container(["sm_75", whole])) as source:
        entry = read_container(source, 0).entries[1]
        found = list(split(source, entry, {0, 2, 3}))
    with source_of(make.container([one.header + one.payload for one in found])) as source:
        entries = read_container(source, 0).entries
        for index, word in enumerate(("sm_80", "sm_100f", "sm_120")):
            single = make.entry(word, size=4000)
            assert read_payload(source, entries[index]) == single.payload
            assert entries[index].label == word
            assert entries[index].flags == single.flags | make.ZSTD
            assert entries[index].header_size == single.header_size


def test_apart_names_every_cubin() -> None:
    with source_of(make.container([make.concatenated(WORDS)])) as source:
        parts = apart(read_container(source, 0).entries[0])
    assert [part.label for part in parts] == WORDS
    assert {part.kind for part in parts} == {make.CUBIN}


def test_the_toolkits_cubins_get_the_headers_of_ordinary_entries() -> None:
    """add.fatbin holds the same kernel for sm_80, sm_86 and sm_90, stored plain by nvcc."""
    with (PARTS / "add.fatbin").open("rb") as one, (PARTS / "concatenated.fatbin").open("rb") as other:
        ordinary = {}
        source = Source.of_file(one.fileno())
        for entry in read_container(source, 0).entries:
            ordinary[entry.label] = source.read(entry.offset, entry.header_size), read_payload(source, entry)
        source = Source.of_file(other.fileno())
        whole = next(entry for entry in read_container(source, 0).entries if entry.subs)
        for sub, new in zip(whole.subs, split(source, whole, range(len(whole.subs))), strict=True):
            header, payload = ordinary[sub.architecture.name]
            with source_of(make.container([new.header + new.payload])) as built:
                assert read_payload(built, read_container(built, 0).entries[0]) == payload
            changed = {at for at in range(len(header)) if header[at] != new.header[at]}
            assert changed <= {*range(8, 20), 41, *range(56, 64)}


def test_a_cubin_that_passes_the_stream_is_an_error() -> None:
    whole = make.concatenated(["sm_80", "sm_90"], size=500)
    block = bytearray(whole.block)
    struct.pack_into("<Q", block, 8 + 64 + 8, 1 << 20)
    broken = replace(whole, block=bytes(block))
    with source_of(make.container([broken])) as source:
        entry = read_container(source, 0).entries[0]
        with pytest.raises(FatbinFormatError, match="passes the end"):
            list(split(source, entry, {0}))
