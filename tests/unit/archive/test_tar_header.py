"""Header groups against Python's tarfile: what it writes is read, what is resized it reads."""

from __future__ import annotations

import io
import tarfile
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.conda import Item, tar
from wheelslim.archive.artifact import MemberType
from wheelslim.archive.tar_header import BLOCK_SIZE, parse_header, pax_records, plain_name, resized
from wheelslim.errors import ArchiveError

FORMATS: list[Literal[0, 1, 2]] = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
SIZES = [0, 1, 511, 8**11 - 1, 8**11, 1 << 40]


def group_of(info: tarfile.TarInfo, kind: Literal[0, 1, 2] = tarfile.PAX_FORMAT) -> bytes:
    return info.tobuf(kind, "utf-8", "surrogateescape")


def read_back(group: bytes) -> tarfile.TarInfo:
    with tarfile.open(fileobj=io.BytesIO(group), mode="r:", encoding="utf-8") as archive:
        info = archive.next()
    assert info is not None
    return info


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["lib/a.so", "d/" + "n" * 99, "é" * 40, "long/" * 30 + "name"])
def test_what_tarfile_writes_is_read(kind: Literal[0, 1, 2], name: str) -> None:
    if kind == tarfile.USTAR_FORMAT and (len(name) > 100):
        pytest.skip("ustar cannot hold the name")
    info = tarfile.TarInfo(name)
    info.size, info.mode = 12345, 0o750
    header = parse_header(group_of(info, kind), b"")
    assert (header.name, header.type, header.size, header.mode) == (name, MemberType.FILE, 12345, 0o750)


@pytest.mark.parametrize("old", SIZES)
@pytest.mark.parametrize("new", SIZES)
@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_resized_header_says_the_new_size_and_all_else(old: int, new: int, kind: Literal[0, 1, 2]) -> None:
    info = tarfile.TarInfo("share/" + "long-name-" * 20 + "ü")
    info.size, info.mode, info.mtime = old, 0o751, 1_600_000_000
    info.uid, info.gid, info.uname, info.gname = 12, 34, "usér", "group"
    info.pax_headers = {"SCHILY.xattr.user.x": "y", "comment": "z"} if kind == tarfile.PAX_FORMAT else {}
    group = group_of(info, kind)
    found = read_back(resized(group, new))
    assert found.size == new
    before = read_back(group)
    assert {**before.get_info(), "size": 0, "chksum": 0} == {**found.get_info(), "size": 0, "chksum": 0}
    assert {**before.pax_headers, "size": ""} == {**found.pax_headers, "size": ""}
    assert resized(group, old) == group


@pytest.mark.parametrize("end", [b"\0", b" "])
def test_the_end_of_the_size_field_is_kept(end: bytes) -> None:
    block = bytearray(group_of(tarfile.TarInfo("a")))
    block[135:136] = end
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    assert resized(bytes(block), 7)[124:136] == b"00000000007" + end


@given(st.dictionaries(st.text("abcXYZ.", min_size=1), st.text(max_size=120), min_size=1))
def test_pax_records_are_those_that_tarfile_wrote(records: dict[str, str]) -> None:
    records = {f"X.{key}": value for key, value in records.items()}
    data = tar([Item("a", pax=records)])
    assert data[156:157] == b"x"
    size = int(data[124:135], 8)
    found = dict(pax_records(data[BLOCK_SIZE : BLOCK_SIZE + size]))
    assert found == {key.encode(): value.encode("utf-8", "surrogateescape") for key, value in records.items()}


@pytest.mark.parametrize("data", [b"5 a=b", b"9 a=b\n", b"x a=b\n", b"6 a=b.", b"2 \n", b"4 a\n", b"0 a=b\n"])
def test_broken_pax_records_are_refused(data: bytes) -> None:
    with pytest.raises(ArchiveError, match="pax header"):
        pax_records(data)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("./a/b", "a/b"),
        ("a/", "a"),
        ("././a", "a"),
        (".//a", "a"),
        (".", "."),
        ("./", ""),
        ("..a", "..a"),
        ("/a", "/a"),
    ],
)
def test_plain_names(name: str, plain: str) -> None:
    assert plain_name(name) == plain
