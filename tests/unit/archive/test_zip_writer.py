"""The zip writer; zipfile, our own strict reader and unzip are the judges."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from builders.zip_bytes import RawMember, zip_bytes
from wheelslim.archive.deflate import Compression, Deflated, deflate, store
from wheelslim.archive.file_copy import copy_range
from wheelslim.archive.inflate import member_blocks
from wheelslim.archive.zip_directory import DirectoryRecord
from wheelslim.archive.zip_format import END, Method
from wheelslim.archive.zip_reader import ZipArchive, read_zip
from wheelslim.archive.zip_writer import NewMember, ZipWriter, central_record, end_records
from wheelslim.errors import ArtifactError
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = b"text, " * 5000
EXTRA = b"UT\x05\x00\x03\x01\x02\x03\x04"
MEMBERS = [
    RawMember(b"a/", b"", method=0, central={"external": 0o40755 << 16 | 0x10}),
    RawMember(
        b"a/x.py", TEXT, extra=EXTRA, comment=b"c", central={"external": 0o100755 << 16, "internal": 1}
    ),
    RawMember(b"a/y.so", TEXT * 2, descriptor=4, central={"time": 3, "date": 0x5555}, local={"time": 3}),
    RawMember("a/µ".encode(), TEXT, flags=0x802, extra=EXTRA),
    RawMember(b"a/z", TEXT, method=0),
    RawMember(b"a/wide", TEXT, wide=True, central={"needed": 45}, local={"needed": 45}),
]


def open_zip(path: Path, max_ratio: float = 200) -> ZipArchive:
    return read_zip(Source.of_file(os.open(path, os.O_RDONLY)), max_ratio)


def ignored(size: int) -> None:
    """Take a report of progress."""


def filler(
    data: bytes, method: int, pool: ThreadPoolExecutor
) -> Callable[[Callable[[bytes], int]], Deflated]:
    def fill(write: Callable[[bytes], int]) -> Deflated:
        if method == Method.STORED:
            return store([data], write)
        return deflate([data], write, Compression.DEFAULT, pool, 2)

    return fill


def rewrite(
    original: ZipArchive, target: Path, new: dict[str, bytes], dropped: frozenset[str] = frozenset()
) -> ZipArchive:
    fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    reported: list[int] = []
    with ThreadPoolExecutor(2) as pool:
        writer = ZipWriter(fd, original, pool, reported.append)
        for entry in original.entries:
            if entry.name in new:
                data = new[entry.name]
                writer.add(NewMember.instead_of(entry), len(data), filler(data, entry.method, pool))
            elif entry.name not in dropped:
                writer.copy(entry)
        order = [entry.name for entry in original.entries if entry.name not in dropped]
        size = writer.finish(order, original.comment)
    os.close(fd)
    assert target.stat().st_size == size
    return open_zip(target)


@pytest.fixture
def original(tmp_path: Path) -> ZipArchive:
    path = tmp_path / "original.zip"
    path.write_bytes(zip_bytes(MEMBERS, prefix=b"#!prefix\n", comment=b"a comment"))
    return open_zip(path)


def test_a_plain_copy_keeps_every_local_byte_and_every_fact(original: ZipArchive, tmp_path: Path) -> None:
    copy = rewrite(original, tmp_path / "copy.zip", {})
    start = original.entries[-1].end_offset
    assert copy.source.read(0, start) == original.source.read(0, start)
    assert (copy.comment, copy.prefix) == (original.comment, original.prefix)
    with (
        zipfile.ZipFile(tmp_path / "original.zip") as before,
        zipfile.ZipFile(tmp_path / "copy.zip") as after,
    ):
        assert after.testzip() is None
        for old, new in zip(before.infolist(), after.infolist(), strict=True):
            for fact in (
                "filename", "date_time", "compress_type", "comment", "create_system", "create_version",
                "flag_bits", "internal_attr", "external_attr", "header_offset", "CRC", "compress_size",
                "file_size",
            ):  # fmt: skip
                assert getattr(old, fact) == getattr(new, fact), fact


def test_new_content_keeps_the_facts_that_are_still_true(original: ZipArchive, tmp_path: Path) -> None:
    new = {entry.name: entry.name.encode() * 3000 for entry in original.entries if not entry.is_directory}
    copy = rewrite(original, tmp_path / "copy.zip", new)
    with zipfile.ZipFile(tmp_path / "copy.zip") as judge:
        assert {name: judge.read(name) for name in new} == new
    for before, after in zip(original.entries[1:], copy.entries[1:], strict=True):
        assert after.flags == before.flags & 0x800, "no descriptor, no level"
        assert (after.time, after.date, after.method) == (before.time, before.date, before.method)
        assert after.external_attributes == before.external_attributes
        assert after.internal_attributes == before.internal_attributes
        assert (after.made_by, after.comment) == (before.made_by, before.comment)
        assert after.needed == (20 if before.method == 8 else before.needed)
        assert (after.extra, after.local_extra) == ((EXTRA, EXTRA) if EXTRA in before.extra else (b"", b""))
        assert after.end_offset == after.data_offset + after.compressed_size


def test_neighbours_move_up_when_members_go(original: ZipArchive, tmp_path: Path) -> None:
    copy = rewrite(original, tmp_path / "copy.zip", {"a/z": b"new"}, frozenset({"a/x.py", "a/wide"}))
    assert [entry.name for entry in copy.entries] == ["a/", "a/y.so", "a/µ", "a/z"]
    contents = [b"".join(member_blocks(copy, entry)) for entry in copy.entries]
    assert contents == [b"", TEXT * 2, TEXT, b"new"]
    ends = [copy.prefix, *(entry.end_offset for entry in copy.entries[:-1])]
    assert [entry.header_offset for entry in copy.entries] == ends, "no gaps"


def test_everything_may_go(original: ZipArchive, tmp_path: Path) -> None:
    names = frozenset(entry.name for entry in original.entries)
    assert rewrite(original, tmp_path / "copy.zip", {}, names).entries == ()


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_unzip_finds_no_fault(original: ZipArchive, tmp_path: Path) -> None:
    rewrite(original, tmp_path / "copy.zip", {"a/x.py": b"new" * 999})
    result = subprocess.run(
        ["unzip", "-t", tmp_path / "copy.zip"], capture_output=True, text=True, check=False
    )
    assert "No errors detected" in result.stdout
    assert result.returncode <= 1, "1 is the warning about the prefix"


def header(**values: int) -> DirectoryRecord:
    return DirectoryRecord(
        "x", b"x", 0x031E, 20, 0, 8, 0, 33, 7, values.get("compressed_size", 5), values.get("size", 5),
        0, 0, EXTRA, b"", 0,
    )  # fmt: skip


LARGE = 0xFFFFFFFF
WIDE_CASES = {
    "nothing": ({}, 0, 0),
    "just below": ({"size": LARGE - 1, "compressed_size": LARGE - 1}, LARGE - 1, 0),
    "size": ({"size": LARGE}, 0, 8),
    "both sizes": ({"size": 1 << 40, "compressed_size": 1 << 33}, 0, 16),
    "offset": ({}, 1 << 34, 8),
    "all": ({"size": 1 << 40, "compressed_size": 1 << 33}, 1 << 34, 24),
}


@pytest.mark.parametrize("case", WIDE_CASES)
def test_zip64_fields_only_where_needed(case: str) -> None:
    values, offset, wide = WIDE_CASES[case]
    record = central_record(header(**values), offset)
    info = zipfile.ZipInfo("x")
    info.file_size = int.from_bytes(record[24:28], "little")
    info.compress_size = int.from_bytes(record[20:24], "little")
    info.header_offset = int.from_bytes(record[42:46], "little")
    info.extra = record[47:]
    assert info.extra.endswith(EXTRA)
    assert len(info.extra) == len(EXTRA) + (wide + 4 if wide else 0)
    # The judge needs the CRC of the name only for another kind of field.
    decode = info._decodeExtra  # type: ignore[attr-defined]
    decode(0) if decode.__code__.co_argcount == 2 else decode()
    assert info.file_size == values.get("size", 5)
    assert info.compress_size == values.get("compressed_size", 5)
    assert info.header_offset == offset
    assert int.from_bytes(record[6:8], "little") == (45 if wide else 20)


@pytest.mark.parametrize(
    ("count", "size", "offset", "wide"),
    [
        (0xFFFE, 100, 100, False),
        (0xFFFF, 100, 100, True),
        (70_000, 100, 100, True),
        (3, 100, LARGE, True),
        (3, LARGE, 5, True),
        (3, 100, LARGE - 1, False),
    ],
)
def test_zip64_end_records_only_where_needed(count: int, size: int, offset: int, wide: bool) -> None:
    tail = end_records(count, size, offset, b"why")
    assert tail.startswith(b"PK\x06\x06") == wide
    assert len(tail) == END.size + 3 + (56 + 20 if wide else 0)


def test_a_member_of_5_gib_has_zip64_fields_in_both_headers(original: ZipArchive, tmp_path: Path) -> None:
    size, squeezed = 5 << 30, bytes(8 << 20)  # what it inflates to does not matter to headers
    fd = os.open(tmp_path / "copy.zip", os.O_RDWR | os.O_CREAT)
    with ThreadPoolExecutor(1) as pool:
        writer = ZipWriter(fd, original, pool, ignored)

        def fill(write: Callable[[bytes], int]) -> Deflated:
            write(squeezed)
            return Deflated(size, len(squeezed), 7, "")

        writer.add(NewMember.instead_of(original.entries[1]), size, fill)
        writer.copy(original.entries[2])
        writer.finish(["a/x.py", "a/y.so"], b"")
    large, small = read_zip(Source.of_file(fd), max_ratio=1000).entries
    assert (large.size, large.compressed_size, large.needed) == (size, len(squeezed), 45)
    assert large.local_extra.endswith(EXTRA)
    assert len(large.local_extra) == len(EXTRA) + 20
    assert b"".join(member_blocks(open_zip(tmp_path / "copy.zip", 1000), small)) == TEXT * 2
    with zipfile.ZipFile(tmp_path / "copy.zip") as judge:
        assert [info.file_size for info in judge.infolist()] == [size, len(TEXT) * 2]
        judge.open("a/x.py").close()
    os.close(fd)


def without_kernel_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "copy_file_range", raising=False)


def refused_kernel_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, "other file system")

    monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)


def idle_kernel_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "copy_file_range", lambda *_: 0, raising=False)


def partial_kernel_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def partial(source: int, target: int, count: int, from_offset: int, to_offset: int) -> int:
        data = os.pread(source, min(count, 7), from_offset)
        return os.pwrite(target, data, to_offset)

    monkeypatch.setattr(os, "copy_file_range", partial, raising=False)


@pytest.mark.parametrize(
    "change", [without_kernel_copy, refused_kernel_copy, idle_kernel_copy, partial_kernel_copy]
)
def test_every_way_of_copying_gives_the_same(
    change: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytes(range(256)) * 20
    (tmp_path / "from").write_bytes(data)
    change(monkeypatch)
    source = Source.of_file(os.open(tmp_path / "from", os.O_RDONLY)).part(100, 5000)
    target = os.open(tmp_path / "to", os.O_RDWR | os.O_CREAT)
    steps: list[int] = []
    copy_range(source, target, 3, steps.append)
    assert (tmp_path / "to").read_bytes() == bytes(3) + data[100:5100]
    assert sum(steps) == 5000


def test_a_source_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "from").write_bytes(bytes(5000))
    source = Source.of_file(os.open(tmp_path / "from", os.O_RDONLY))
    (tmp_path / "from").write_bytes(bytes(100))
    target = os.open(tmp_path / "to", os.O_RDWR | os.O_CREAT)
    with pytest.raises(ArtifactError, match="shorter"):
        copy_range(source, target, 0, ignored)


def test_70000_members_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(70_000):
            archive.writestr(zipfile.ZipInfo(f"{index:x}"), b"")
    copy = rewrite(open_zip(path), tmp_path / "copy.zip", {"1": b"one"})
    assert len(copy.entries) == 70_000
    with zipfile.ZipFile(tmp_path / "copy.zip") as judge:
        assert judge.read("1") == b"one"
        assert len(judge.namelist()) == 70_000
