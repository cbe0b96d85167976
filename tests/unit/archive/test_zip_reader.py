"""The zip reader against sound, odd and hostile files; the judge of sound ones is zipfile."""

from __future__ import annotations

import io
import os
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.zip_bytes import WIDE, RawMember, zip_bytes
from wheelslim.archive.inflate import heads, member_blocks
from wheelslim.archive.zip_reader import ZipArchive, read_zip
from wheelslim.errors import ArchiveError, WheelslimError
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = b"device code, " * 400
ONE = RawMember(b"a/one.txt", TEXT)
TWO = RawMember(b"a/two.bin", bytes(range(256)), method=0)


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], ZipArchive]:
    opened: list[int] = []

    def read_bytes(data: bytes) -> ZipArchive:
        path = tmp_path / "case.zip"
        path.write_bytes(data)
        opened.append(os.open(path, os.O_RDONLY))
        return read_zip(Source.of_file(opened[-1]))

    return read_bytes


def content(archive: ZipArchive, index: int) -> bytes:
    return b"".join(member_blocks(archive, archive.entries[index]))


SOUND = {
    "empty": zip_bytes([]),
    "deflated and stored": zip_bytes([ONE, TWO]),
    "empty member": zip_bytes([RawMember(b"nothing", b"", method=0), RawMember(b"nothing deflated", b"")]),
    "directory": zip_bytes([RawMember(b"a/", b"", method=0), ONE]),
    "UTF-8 name": zip_bytes([RawMember("a/µ😀.txt".encode(), TEXT, flags=0x800)]),
    "cp437 name": zip_bytes([RawMember(b"a/\x81ber.txt", TEXT)]),
    "archive comment": zip_bytes([ONE], comment=b"made by hand"),
    "longest comment": zip_bytes([ONE], comment=b"x" * 0xFFFF),
    "member comment and extra": zip_bytes([RawMember(b"x", TEXT, comment=b"why", extra=b"UT\x01\x00\x00")]),
    "broken tail of extra": zip_bytes([RawMember(b"x", TEXT, extra=b"UT\x01\x00\x00\x00\x00")]),
    "prefix, offsets adjusted": zip_bytes([ONE, TWO], prefix=b"#!/bin/sh\nexit\n"),
    "prefix, offsets as before": zip_bytes([ONE, TWO], prefix=b"#!/bin/sh\nexit\n", adjusted=False),
    "gap between members": zip_bytes([ONE, RawMember(b"two", TEXT, gap=b"\x00" * 77)]),
    "descriptor": zip_bytes([RawMember(b"x", TEXT, descriptor=4), ONE]),
    "descriptor of 8 bytes": zip_bytes([RawMember(b"x", TEXT, descriptor=8, wide=True), ONE]),
    "descriptor without signature": zip_bytes([RawMember(b"x", TEXT, descriptor=-4), ONE]),
    "ZIP64 member": zip_bytes([RawMember(b"x", TEXT, wide=True), ONE]),
    "ZIP64 end": zip_bytes([ONE, TWO], end64={}, end={"entries": 0xFFFF, "here": 0xFFFF}),
    "ZIP64 end beside true values": zip_bytes([ONE, TWO], end64={}),
    "ZIP64 end, all sentinels": zip_bytes(
        [ONE, TWO],
        end64={},
        end={"entries": 0xFFFF, "here": 0xFFFF, "size": WIDE, "offset": WIDE},
        prefix=b"before",
    ),
}


@pytest.mark.parametrize("case", SOUND)
def test_sound_files_read_as_zipfile_reads_them(case: str, read: Callable[[bytes], ZipArchive]) -> None:
    archive = read(SOUND[case])
    with zipfile.ZipFile(io.BytesIO(SOUND[case])) as judge:
        assert archive.comment == judge.comment
        for index, info in enumerate(judge.infolist()):
            entry = archive.entries[index]
            assert (entry.name, entry.size, entry.compressed_size, entry.crc) == (
                info.filename,
                info.file_size,
                info.compress_size,
                info.CRC,
            )
            assert entry.header_offset == info.header_offset
            assert (entry.flags, entry.method, entry.comment) == (
                info.flag_bits,
                info.compress_type,
                info.comment,
            )
            assert content(archive, index) == judge.read(info)
        assert len(archive.entries) == len(judge.infolist())


def member(**overrides: dict[str, int | bytes]) -> list[RawMember]:
    return [RawMember(b"x", TEXT, **overrides), ONE]  # type: ignore[arg-type]


def long_comment(data: bytes) -> bytes:
    """Let the last record claim a comment of 500 bytes."""
    record = data.rindex(b"PK\x01\x02")
    return data[: record + 32] + (500).to_bytes(2, "little") + data[record + 34 :]


HOSTILE = {
    "no zip": (b"hello" * 100, "no zip file"),
    "empty file": (b"", "no zip file"),
    "cut off": (zip_bytes([ONE, TWO])[:-30], "cut off"),
    "cut off in the data": (zip_bytes([ONE, TWO])[:40], "cut off"),
    "start is missing": (zip_bytes([ONE, TWO], end={"offset": 10_000}), "outside the file"),
    "bytes after the end": (zip_bytes([ONE]) + b"\x00", "cut off"),
    "several disks": (zip_bytes([ONE], end={"disk": 1}), "several disks"),
    "member on another disk": (zip_bytes(member(central={"disk": 2})), "several disks"),
    "encrypted": (zip_bytes([RawMember(b"x", TEXT, flags=1)]), "encrypted"),
    "strongly encrypted": (zip_bytes([RawMember(b"x", TEXT, flags=0x41)]), "encrypted"),
    "bzip2": (zip_bytes([RawMember(b"x", TEXT, method=12)]), "method is not supported"),
    "deflate64": (zip_bytes([RawMember(b"x", TEXT, method=9)]), "method is not supported"),
    "zstandard": (zip_bytes([RawMember(b"x", TEXT, method=93)]), "method is not supported"),
    "patched data": (zip_bytes([RawMember(b"x", TEXT, flags=0x20)]), "patched data"),
    "dot dot": (zip_bytes([RawMember(b"a/../../etc/passwd", TEXT)]), "leads outside"),
    "dot dot alone": (zip_bytes([RawMember(b"..", TEXT)]), "leads outside"),
    "dot": (zip_bytes([RawMember(b"a/./b", TEXT)]), "leads outside"),
    "absolute": (zip_bytes([RawMember(b"/etc/passwd", TEXT)]), "leads outside"),
    "drive": (zip_bytes([RawMember(b"C:evil.txt", TEXT)]), "leads outside"),
    "UNC": (zip_bytes([RawMember(b"//host/share/x", TEXT)]), "leads outside"),
    "backslash": (zip_bytes([RawMember(b"a\\..\\b", TEXT)]), "leads outside"),
    "NUL in the name": (zip_bytes([RawMember(b"a.so\x00.txt", TEXT)]), "leads outside"),
    "no name": (zip_bytes([RawMember(b"", TEXT)]), "leads outside"),
    "double slash": (zip_bytes([RawMember(b"a//b", TEXT)]), "leads outside"),
    "bad UTF-8": (zip_bytes([RawMember(b"\xff\xfe", TEXT, flags=0x800)]), "UTF-8"),
    "duplicate": (zip_bytes([ONE, TWO, ONE]), "same name"),
    "file and directory": (zip_bytes([RawMember(b"a", TEXT), RawMember(b"a/", b"", method=0)]), "same name"),
    "directory with content": (zip_bytes([RawMember(b"a/", TEXT)]), "has content"),
    "two names": (zip_bytes(member(local={"name": b"y"})), "disagree on the name"),
    "two methods": (zip_bytes(member(local={"method": 0})), "disagree on the compression method"),
    "two CRCs": (zip_bytes(member(local={"crc": 7})), "disagree on the CRC"),
    "two sizes": (zip_bytes(member(local={"size": 7})), "disagree on the size"),
    "two compressed sizes": (zip_bytes(member(local={"compressed": 7})), "disagree on the compressed size"),
    "two ideas of UTF-8": (zip_bytes(member(local={"flags": 0x800})), "disagree on the flags"),
    "descriptor in one header": (zip_bytes(member(local={"flags": 8})), "disagree on the flags"),
    "wrong descriptor": (
        zip_bytes([RawMember(b"x", TEXT, descriptor=4, central={"crc": 7})]),
        "data descriptor",
    ),
    "stored with two sizes": (
        zip_bytes([RawMember(b"x", TEXT, method=0, central={"size": 7}, local={"size": 7})]),
        "two sizes",
    ),
    "overlap": (zip_bytes([ONE, RawMember(b"x", TEXT, central={"offset": 0})]), "overlap"),
    "reaches into the directory": (
        zip_bytes(
            [
                RawMember(
                    b"x",
                    b"0" * 5000,
                    method=0,
                    compressed=b"0" * 4990,
                    local={"compressed": 5000},
                    central={"compressed": 5000},
                )
            ]
        ),
        "central directory",
    ),
    "offset into nothing": (zip_bytes(member(central={"offset": 3})), "no local header"),
    "offset after the end": (zip_bytes(member(central={"offset": 1 << 30})), "no local header"),
    "more entries than there are": (zip_bytes([ONE], end={"entries": 2, "here": 2}), "does not parse"),
    "fewer entries than there are": (zip_bytes([ONE, TWO], end={"entries": 1, "here": 1}), "other bytes"),
    "comment like an end record": (zip_bytes([ONE], comment=b"PK\x05\x06"), "looks like end records"),
    "record passes the directory": (long_comment(zip_bytes([ONE])), "passes the end"),
    "ZIP64 value missing": (zip_bytes(member(central={"size": WIDE})), "missing from the ZIP64"),
    "ZIP64 value missing locally": (zip_bytes(member(local={"size": WIDE})), "lacks the sizes"),
    "ZIP64 end disagrees": (zip_bytes([ONE], end64={"entries": 2, "here": 2}), "disagrees"),
    "ZIP64 end is elsewhere": (
        zip_bytes([ONE], end64={"where": 3, "record": 99}, end={"entries": 0xFFFF, "here": 0xFFFF}),
        "ZIP64 end record is missing",
    ),
    "ZIP64 of several disks": (zip_bytes([ONE], end64={"disks": 2}), "several disks"),
    "impossible ratio": (
        zip_bytes(
            [
                RawMember(
                    b"x",
                    TEXT,
                    wide=True,
                    extra=b"",
                    compressed=b"\x03\x00",
                    local={"extra": b""},
                    central={"size": 1 << 31, "extra": b"", "compressed": 2, "offset": 0},
                )
            ]
        ),
        "more bytes than deflate could hold",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_with_the_reason(case: str, read: Callable[[bytes], ZipArchive]) -> None:
    data, reason = HOSTILE[case]
    with pytest.raises(ArchiveError, match=reason):
        read(data)


def test_a_bomb_of_many_members_is_refused_unless_the_limit_is_raised(tmp_path: Path) -> None:
    zeros = bytes(64 << 20)
    path = tmp_path / "bomb.zip"
    first = RawMember(b"0", zeros)
    payload = first.payload
    members = [RawMember(str(index).encode(), zeros, compressed=payload) for index in range(20)]
    path.write_bytes(zip_bytes(members))
    fd = os.open(path, os.O_RDONLY)
    with pytest.raises(ArchiveError, match="zip bomb"):
        read_zip(Source.of_file(fd))
    assert len(read_zip(Source.of_file(fd), max_ratio=2000).entries) == 20
    os.close(fd)


DAMAGED = {
    "wrong CRC": (RawMember(b"x", TEXT, local={"crc": 7}, central={"crc": 7}), "CRC"),
    "wrong CRC, stored": (RawMember(b"x", TEXT, method=0, local={"crc": 7}, central={"crc": 7}), "CRC"),
    "less than it says": (
        RawMember(b"x", TEXT, local={"size": 6000}, central={"size": 6000}),
        "another size",
    ),
    "more than it says": (RawMember(b"x", TEXT, local={"size": 9}, central={"size": 9}), "another size"),
    "no deflate": (RawMember(b"x", TEXT, compressed=b"\xff" * 100), "corrupt|another size"),
    "no end": (RawMember(b"x", b"", compressed=b"\x02\x00"), "cut off"),
    "bytes after the end": (RawMember(b"x", b"", compressed=b"\x03\x00more"), "follow the end"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_shows_when_the_member_is_read(case: str, read: Callable[[bytes], ZipArchive]) -> None:
    damaged, reason = DAMAGED[case]
    archive = read(zip_bytes([damaged]))
    with pytest.raises(ArchiveError, match=reason):
        content(archive, 0)


def test_heads_are_the_first_bytes_of_each_member(read: Callable[[bytes], ZipArchive]) -> None:
    noise = os.urandom(3000)
    members = [ONE, TWO, RawMember(b"noise", noise), RawMember(b"short", b"abc"), RawMember(b"e", b"")]
    archive = read(zip_bytes(members))
    found = list(heads(archive, list(archive.entries), 64))
    assert found == [TEXT[:64], TWO.data[:64], noise[:64], b"abc", b""]


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_any_change_of_bytes_gives_an_archive_or_an_error_of_ours(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sound = bytearray(SOUND[data.draw(st.sampled_from(sorted(SOUND)))][:3000])
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(sound) - 1))
        sound[at : at + 1] = data.draw(st.binary(max_size=3))
        if not sound:
            sound += b"P"
    path = tmp_path_factory.mktemp("fuzz") / "f.zip"
    path.write_bytes(sound)
    fd = os.open(path, os.O_RDONLY)
    try:
        archive = read_zip(Source.of_file(fd))
        for index in range(len(archive.entries)):
            content(archive, index)
    except WheelslimError:
        pass
    finally:
        os.close(fd)


CONTROL = "".join(map(chr, range(32))) + "\x7f"
plain = st.characters(codec="utf-8", exclude_characters="/\\:." + CONTROL)
names = st.text(plain, min_size=1, max_size=20)


@settings(deadline=None, max_examples=100)
@given(
    st.dictionaries(
        names, st.tuples(st.binary(max_size=3000), st.sampled_from((0, 8)), st.booleans()), max_size=8
    ),
    st.binary(max_size=50).filter(lambda comment: b"PK\x05\x06" not in comment),
)
def test_what_zipfile_writes_is_read_back(files: dict[str, tuple[bytes, int, bool]], comment: bytes) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.comment = comment
        for name, (data, method, zip64) in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=zip64) as stream:
                stream.write(data)
    memory = os.memfd_create("case") if hasattr(os, "memfd_create") else None
    if memory is None:
        pytest.skip("no memfd on this system")
    try:
        os.write(memory, out.getvalue())
        read_back = read_zip(Source.of_file(memory))
        found = {entry.name: b"".join(member_blocks(read_back, entry)) for entry in read_back.entries}
        assert found == {name: data for name, (data, _, _) in files.items()}
        assert read_back.comment == comment
    finally:
        os.close(memory)
