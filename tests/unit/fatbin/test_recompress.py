"""Entries stored anew as zstd: what nvcc itself would have written."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import fatbin as make
from builders.sources import source_of
from corpus.recipes import LIBRARIES
from wheelslim.errors import FatbinFormatError
from wheelslim.fatbin.payload import read_payload
from wheelslim.fatbin.reader import read_container
from wheelslim.fatbin.recompress import NewEntry, recompressed
from wheelslim.library import read_library
from wheelslim.source import Source

if TYPE_CHECKING:
    from wheelslim.fatbin.model import Entry

CUBIN = b"\x7fELF" + b"a cubin that repeats itself " * 40


def stored_anew(made: make.Entry) -> NewEntry | None:
    with source_of(make.container([made])) as source:
        return recompressed(source, read_container(source, 0).entries[0])


def entries_of(name: str) -> dict[tuple[int, int, str], tuple[bytes, NewEntry | None, int]]:
    """By container, kind and architecture: the bytes of an entry, and what it becomes."""
    found = {}
    with (LIBRARIES / f"{name}.so").open("rb") as file:
        source = Source.of_file(file.fileno())
        for part in read_library(source).device:
            section = source.part(part.section.sh_offset, part.section.sh_size)
            for number, container in enumerate(part.tiling.containers):
                for entry in container.entries:
                    key = (number, entry.kind, entry.label)
                    raw = section.read(entry.offset, entry.size)
                    found[key] = raw, recompressed(section, entry), entry.size
    return found


@pytest.mark.parametrize("name", ["lz4", "plain", "many_archs"])
def test_the_result_is_what_nvcc_writes_for_size(name: str) -> None:
    """The corpus has the same kernels stored plain, as LZ4 and as zstd."""
    theirs = entries_of("zstd")
    compared = 0
    for key, (_, new, size) in entries_of(name).items():
        if new is None:
            continue  # zstd already, as nvcc stores PTX by default
        assert new.header + new.payload == theirs[key][0]
        assert len(new.payload) % 8 == 0
        assert new.size < size
        compared += 1
    assert compared >= 12


def test_zstd_entries_stay_as_they_are() -> None:
    assert all(new is None for _, new, _ in entries_of("zstd").values())


@pytest.mark.parametrize(
    "made",
    [
        make.Entry(CUBIN, kind=make.LTO),
        make.Entry(CUBIN, kind=0x400),
        make.Entry(CUBIN, kind=make.RELOCATABLE_PTX),
        make.compressed(make.Entry(CUBIN), "zstd"),
        replace(make.compressed(make.Entry(CUBIN), "lz4"), flags=make.LINUX_64 | make.LZ4 | make.OBFUSCATED),
        make.Entry(bytes(range(256))),
        make.Entry(b"\x7fELF" + bytes(12)),
    ],
    ids=["lto", "unknown", "relocatable ptx", "zstd", "obfuscated", "incompressible", "tiny"],
)
def test_what_must_not_or_need_not_change_stays(made: make.Entry) -> None:
    assert stored_anew(made) is None


def test_identifier_and_extension_block_stay() -> None:
    made = make.Entry(CUBIN, sm=120, identifier=b"kernel.cu\0", block=make.extension(b"x" * 36))
    new = stored_anew(made)
    assert new is not None
    before = made.pack()
    changed = {at for at in range(made.header_size) if before[at] != new.header[at]}
    assert changed <= {*range(8, 20), 41, *range(56, 64)}


@pytest.mark.parametrize("codec", [None, "lz4"])
def test_flags_that_nobody_here_knows_stay(codec: str | None) -> None:
    four_letters = bytes(random.Random(1).choices(b"abcd", k=4000))
    plain = make.Entry(b"\x7fELF" + four_letters, flags=make.LINUX_64 | 1 << 34 | 1 << 63)
    new = stored_anew(make.compressed(plain, codec) if codec else plain)
    assert new is not None
    entry, _ = read_back(new)
    assert entry.flags == make.LINUX_64 | 1 << 34 | 1 << 63 | make.ZSTD


def test_a_broken_payload_is_an_error_and_not_kept_silently() -> None:
    broken = replace(make.compressed(make.Entry(CUBIN), "lz4"), uncompressed_size=len(CUBIN) + 1)
    with pytest.raises(FatbinFormatError):
        stored_anew(broken)


@given(
    st.binary(min_size=64, max_size=200).map(lambda data: data * 9),
    st.sampled_from([None, "lz4"]),
    st.sampled_from([make.CUBIN, make.PTX]),
)
def test_the_plain_payload_is_the_same(payload: bytes, codec: str | None, kind: int) -> None:
    plain = make.Entry(payload, kind=kind)
    made = make.compressed(plain, codec) if codec else plain
    with source_of(make.container([made])) as source:
        old = read_container(source, 0).entries[0]
        before = read_payload(source, old)
        new = recompressed(source, old)
    if new is None:
        return
    entry, after = read_back(new)
    assert (entry.kind, entry.sm, entry.version) == (old.kind, old.sm, old.version)
    assert entry.flags == old.flags & ~make.LZ4 | make.ZSTD
    if kind == make.PTX and codec is None:
        assert after == before.rstrip(b"\0") + b"\0"
    else:
        assert after == before


def read_back(new: NewEntry) -> tuple[Entry, bytes]:
    with source_of(make.container([new.header + new.payload])) as source:
        entry = read_container(source, 0).entries[0]
        return entry, read_payload(source, entry)
