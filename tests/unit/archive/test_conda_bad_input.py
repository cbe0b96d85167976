"""Broken and hostile packages: one clear ArchiveError each (exit code 3), and no traceback."""

from __future__ import annotations

import bz2
import io
import json
import os
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from builders.conda import (
    CondaPackage,
    Item,
    directory,
    hardlink,
    symlink,
    tar,
    tars_of,
    write_conda,
    write_zip,
)
from unit.archive.conda_rewriters import Cutter, library
from wheelslim.archive.conda import CondaArtifact
from wheelslim.archive.conda_rewrite import CondaOptions, rewrite_conda
from wheelslim.errors import ArchiveError, ExitCode, StorageError, WheelslimError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = [".conda", ".tar.bz2"]
GOOD = CondaPackage([Item("lib/a.so", library(b"x" * 5000, b"y")), Item("lib/b.txt", os.urandom(50_000))])


def rewrite(path: Path) -> None:
    out = path.with_name("out.tmp")
    with CondaArtifact(path) as artifact:
        rewrite_conda(artifact, out, Cutter(), CondaOptions(compression_level=1, jobs=1))


def walk(path: Path) -> None:
    with CondaArtifact(path) as artifact:
        for _ in artifact.walk(lambda member, _head: member.size > 0):
            pass


def refused(path: Path, what: str) -> ArchiveError:
    """Check that reading and rewriting fail in the same way, and say where."""
    errors = []
    for action in (walk, rewrite):
        with pytest.raises(ArchiveError, match=what) as caught:
            action(path)
        assert caught.value.exit_code is ExitCode.UNSUPPORTED
        assert caught.value.place.artifact == str(path)
        errors.append(caught.value)
    return errors[0]


# --- names and links that lead outside ---

HOSTILE: dict[str, tuple[list[Item], str]] = {
    "absolute name": ([Item("/etc/passwd", b"x")], "leads outside"),
    "name with ..": ([Item("lib/../../x", b"x")], "leads outside"),
    "name with .. behind ./": ([Item("./../x", b"x")], "leads outside"),
    "backslash ..": ([Item("lib\\..\\..\\x", b"x")], "leads outside"),
    "drive": ([Item("C:/x", b"x")], "leads outside"),
    "empty name": ([Item("", b"x")], "leads outside"),
    "absolute symlink": ([symlink("lib/x", "/etc/passwd")], "symbolic link leads outside"),
    "symlink with ..": ([symlink("lib/x", "../../etc")], "symbolic link leads outside"),
    "symlink through a symlink": (
        [symlink("a/b/up", "../.."), symlink("x", "a/b/up/../y"), Item("y", b"")],
        "symbolic link leads outside",
    ),
    "file behind a symlink": ([symlink("lib", "other"), Item("lib/x", b"x")], "lies behind"),
    "symlink put over a directory": ([Item("lib/x", b"x"), symlink("lib", "other")], "lies behind"),
    "file behind a file": ([Item("a", b"x"), Item("a/b", b"x")], "lies behind"),
    "hard link outside": ([hardlink("x", "/etc/passwd")], "hard link does not name"),
    "hard link to nothing": ([hardlink("x", "y")], "hard link does not name"),
    "hard link to a later file": ([hardlink("x", "y"), Item("y", b"x")], "hard link does not name"),
    "hard link to a symlink": ([Item("z"), symlink("y", "z"), hardlink("x", "y")], "hard link does not name"),
    "two of one name": ([Item("a", b"x"), Item("./a", b"y")], "same name"),
    "a file and a directory of one name": ([directory("a"), Item("a", b"y")], "same name"),
    "device": ([Item("x", type=tarfile.CHRTYPE)], "of a type"),
    "pipe": ([Item("x", type=tarfile.FIFOTYPE)], "of a type"),
    "unknown type": ([Item("x", type=b"Z")], "of a type"),
    "pax sparse": ([Item("x", b"x", pax={"GNU.sparse.major": "1"})], "sparse"),
    "link with data": ([Item("y", b"y"), Item("x", b"data", type=tarfile.LNKTYPE, link="y")], "has data"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_members_are_refused(tmp_path: Path, kind: str, case: str) -> None:
    items, what = HOSTILE[case]
    path = tmp_path / f"a{kind}"
    info = GOOD.info_items()
    if kind == ".conda":
        write_conda(path, "a", tar(info), tar(items))
    else:
        path.write_bytes(bz2.compress(tar([*info, *items])))
    refused(path, what)


@pytest.mark.parametrize("kind", KINDS)
def test_a_directory_in_the_place_of_the_stamp_is_refused(tmp_path: Path, kind: str) -> None:
    items = [Item("lib/a.so", library(b"x" * 5000, b"y"))]
    package = CondaPackage(items, info={"info/wheelslim.json/x": b"1"}, level=1)
    with pytest.raises(ArchiveError, match="its name is taken"):
        rewrite(package.write(tmp_path, kind))


def test_harmless_links_pass(tmp_path: Path) -> None:
    items = [
        Item("lib/a/x", b""),
        symlink("lib/to_dir", "a"),
        symlink("lib/up", "../lib/a/x"),
        symlink("lib/dangling", "not/there"),
        symlink("root", "."),
        symlink("ring", "ring"),
        symlink("ring1", "ring2"),
        symlink("ring2", "ring1"),
        hardlink("lib/b", "lib/a/x"),
    ]
    walk(CondaPackage(items).write(tmp_path))


# --- containers ---


def zip_of(
    tmp_path: Path, change: Callable[[dict[str, bytes]], object], method: int = zipfile.ZIP_STORED
) -> Path:
    pack = zstandard.ZstdCompressor().compress
    members = {
        "metadata.json": b'{"conda_pkg_format_version": 2}',
        "pkg-a.tar.zst": pack(tar(GOOD.items)),
        "info-a.tar.zst": pack(tar(GOOD.info_items())),
    }
    change(members)
    write_zip(path := tmp_path / "a.conda", members, method)
    return path


BAD_ZIPS: dict[str, tuple[Callable[[dict[str, bytes]], object], str]] = {
    "no info tar": (lambda members: members.pop("info-a.tar.zst"), r"exactly one info-\*"),
    "no pkg tar": (lambda members: members.pop("pkg-a.tar.zst"), r"exactly one pkg-\*"),
    "two pkg tars": (lambda members: members.update({"pkg-b.tar.zst": b""}), r"exactly one pkg-\*"),
    "no metadata": (lambda members: members.pop("metadata.json"), "no metadata"),
    "metadata is no JSON": (lambda members: members.update({"metadata.json": b"{"}), "does not parse"),
    "metadata is a list": (lambda members: members.update({"metadata.json": b"[]"}), "does not parse"),
    "version 3": (
        lambda members: members.update({"metadata.json": b'{"conda_pkg_format_version": 3}'}),
        "version",
    ),
    "empty zst": (lambda members: members.update({"pkg-a.tar.zst": b""}), "truncated"),
    "no zst": (lambda members: members.update({"pkg-a.tar.zst": b"hello, hello"}), "corrupt"),
    "data after the zst": (
        lambda members: members.update({"pkg-a.tar.zst": members["pkg-a.tar.zst"] + b"junk"}),
        "corrupt",
    ),
    "window of 2 GiB": (
        lambda members: members.update({"pkg-a.tar.zst": wide_window(tar(GOOD.items))}),
        "corrupt.*memory",
    ),
}


def wide_window(data: bytes) -> bytes:
    """A zstd frame whose header asks for the largest window; format: RFC 8878, 3.1.1."""
    magic, raw_last = (0xFD2FB528).to_bytes(4, "little"), (len(data) << 3 | 1).to_bytes(3, "little")
    return magic + b"\x00" + bytes([21 << 3]) + raw_last + data


@pytest.mark.parametrize("case", BAD_ZIPS)
def test_broken_containers_are_refused(tmp_path: Path, case: str) -> None:
    change, what = BAD_ZIPS[case]
    refused(zip_of(tmp_path, change), what)


def test_a_deflated_conda_is_refused(tmp_path: Path) -> None:
    refused(
        zip_of(tmp_path, lambda members: None, zipfile.ZIP_DEFLATED), "compressed, which the format forbids"
    )


@pytest.mark.parametrize("data", [b"", b"P", b"hello world", b"\x7fELF" + bytes(100)])
def test_other_files_are_no_packages(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.conda"
    path.write_bytes(data)
    refused(path, "no conda package")


def test_a_missing_file_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        CondaArtifact(tmp_path / "none.conda")
    assert caught.value.exit_code is ExitCode.IO


# --- truncation ---


@pytest.mark.parametrize("part", ["pkg", "info"])
@pytest.mark.parametrize("left", [0.1, 0.5, 0.99])
def test_a_truncated_zst_is_refused(tmp_path: Path, part: str, left: float) -> None:
    def cut(members: dict[str, bytes]) -> None:
        data = members[f"{part}-a.tar.zst"]
        members[f"{part}-a.tar.zst"] = data[: int(len(data) * left)]

    refused(zip_of(tmp_path, cut), "truncated|corrupt")


def test_a_zst_without_its_last_byte_is_refused(tmp_path: Path) -> None:
    """All of the tar is there: only the frame lacks the end of its checksum."""

    def cut(members: dict[str, bytes]) -> None:
        whole = zstandard.ZstdCompressor(write_checksum=True).compress(tar(GOOD.items))
        members["pkg-a.tar.zst"] = whole[:-1]

    refused(zip_of(tmp_path, cut), "zstd stream is truncated")


@pytest.mark.parametrize("left", [0.01, 0.5, 0.9999])
def test_a_truncated_bz2_is_refused(tmp_path: Path, left: float) -> None:
    path = GOOD.write(tmp_path, ".tar.bz2")
    os.truncate(path, int(path.stat().st_size * left))
    refused(path, "truncated|corrupt")


@pytest.mark.parametrize("size", [100, 512, 1000, 20_000])
def test_a_truncated_tar_in_a_whole_stream_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.conda"
    write_conda(path, "a", tar(GOOD.info_items()), tar(GOOD.items)[:size])
    refused(path, "the tar is truncated")


def test_a_tar_without_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.conda"
    payload = tar([Item("a", bytes(512))])
    write_conda(path, "a", tar(GOOD.info_items()), payload[:1024])
    refused(path, "the tar is truncated")


def test_a_second_tar_behind_the_first_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.conda"
    write_conda(path, "a", tar(GOOD.info_items()), tar(GOOD.items) + tar([Item("hidden", b"x")]))
    refused(path, "other bytes after the end")


def test_a_wrong_crc_in_the_zip_is_refused(tmp_path: Path) -> None:
    path = GOOD.write(tmp_path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(f"pkg-{GOOD.stem}.tar.zst")
    wrong = (info.CRC ^ 1).to_bytes(4, "little")
    path.write_bytes(data.replace(info.CRC.to_bytes(4, "little"), wrong))
    error = refused(path, "CRC-32")
    assert error.place.member == f"pkg-{GOOD.stem}.tar.zst"


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    payload = bytearray(tar(GOOD.items))
    payload[100] ^= 1  # the mode: only the checksum can tell
    path = tmp_path / "a.conda"
    write_conda(path, "a", tar(GOOD.info_items()), bytes(payload))
    refused(path, "tar header does not parse")


def test_a_huge_extended_header_is_refused_without_reading_it(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 40
    path = tmp_path / "a.conda"
    write_conda(path, "a", tar(GOOD.info_items()), info.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    refused(path, "too large")


def test_a_global_header_that_renames_members_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.conda"
    write_conda(path, "a", tar(GOOD.info_items()), tar(GOOD.items, {"path": "lib/other"}))
    refused(path, "global header")


# --- metadata ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["info/index.json", "info/paths.json"])
def test_missing_metadata_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    path = CondaPackage(GOOD.items, info={name: None}).write(tmp_path, kind)
    with pytest.raises(ArchiveError, match="no such member") as caught:
        rewrite(path)
    assert caught.value.place.member == name
    assert caught.value.exit_code is ExitCode.UNSUPPORTED


BAD_METADATA = {
    "index.json": [
        b"",
        b"{",
        b"[]",
        b'{"name": "a"}',
        b'{"name": "a/b", "version": "1", "build": "0"}',
        b"\xff",
    ],
    "paths.json": [
        b"",
        b"{",
        b"[]",
        b'{"paths": []}',
        b'{"paths": [], "paths_version": 2}',
        b'{"paths": {}, "paths_version": 1}',
        b'{"paths": [1], "paths_version": 1}',
        b'{"paths": [{}], "paths_version": 1}',
        b'{"paths": [{"_path": "a"}, {"_path": "./a"}], "paths_version": 1}',
        b"[" * 100_000,
    ],
}


@pytest.mark.parametrize(
    ("name", "data"), [(name, data) for name, rows in BAD_METADATA.items() for data in rows]
)
def test_broken_metadata_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    path = CondaPackage(GOOD.items, info={f"info/{name}": data}).write(tmp_path)
    with pytest.raises(ArchiveError) as caught:
        rewrite(path)
    assert caught.value.place.member == f"info/{name}"
    assert not path.with_name("out.tmp").exists()


def test_info_after_the_files_of_a_tar_bz2_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.bz2"
    path.write_bytes(bz2.compress(tar([*GOOD.info_items(), *GOOD.items, Item("info/late", b"x")])))
    refused(path, "comes after the package's files")


def test_metadata_too_large_to_read_whole_is_refused(tmp_path: Path) -> None:
    path = CondaPackage(GOOD.items, info={"info/big": bytes((64 << 20) + 1)}).write(tmp_path)
    with CondaArtifact(path) as artifact, pytest.raises(ArchiveError, match="too large"):
        artifact.read("info/big")


# --- anything at all ---


@given(st.data())
def test_damaged_packages_never_give_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    raw = bytearray(tar(GOOD.items[:1]))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, 600))] = data.draw(st.integers(0, 255))
    path = folder / "a.conda"
    paths = json.dumps(CondaPackage(GOOD.items[:1]).paths()).encode()
    info = CondaPackage([], info={"info/paths.json": paths}).info_items()
    write_conda(path, "a", tar(info), bytes(raw), level=1)
    try:
        rewrite(path)
    except WheelslimError:
        return
    with tarfile.open(fileobj=io.BytesIO(tars_of(path.with_name("out.tmp"))["pkg"])) as archive:
        archive.getmembers()
