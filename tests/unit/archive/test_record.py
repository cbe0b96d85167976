"""RECORD: rows in, rows out, and everything that is wrong with one."""

from __future__ import annotations

import csv
import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelslim.archive.record import Record, RecordEntry, check_content
from wheelslim.errors import ArchiveError, WheelslimError

NAME = "demo-1.0.dist-info/RECORD"
SHA = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"  # of no bytes, as PEP 376 writes it
EMPTY = hashlib.sha256(b"")

ROWS = {
    "plain": ("a/b.py,{sha},0\n", "a/b.py", 0),
    "comma": ('"a/b,c.py",{sha},12\n', "a/b,c.py", 12),
    "quote": ('"a/b""c.py",{sha},12\n', 'a/b"c.py', 12),
    "line break": ('"a/b\nc.py",{sha},12\n', "a/b\nc.py", 12),
    "line separator": ("a/b\u2028c.py,{sha},12\n", "a/b\u2028c.py", 12),
    "not ASCII": ("a/µ.py,{sha},12\n", "a/µ.py", 12),
    "no size": ("a/b.py,{sha},\n", "a/b.py", None),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_parse_and_come_back_as_they_were(case: str) -> None:
    row, path, size = ROWS[case]
    text = row.format(sha=SHA)
    record = Record.parse(text.encode(), NAME)
    entry = record.entries[path]
    assert (entry.algorithm, entry.digest, entry.size) == ("sha256", EMPTY.digest(), size)
    assert entry.to_row() == text
    assert record.rewritten({}, ()) == text.encode()


WRONG = {
    "two fields": "a.py,sha256=AAAA\n",
    "four fields": "a.py,sha256=AAAA,1,2\n",
    "no path": f",{SHA},1\n",
    "no base64": "a.py,sha256=?,1\n",
    "no digest": "a.py,sha256=,1\n",
    "hex size": f"a.py,{SHA},0x10\n",
    "negative size": f"a.py,{SHA},-1\n",
    "other digits": f"a.py,{SHA},\u0661\n",
    "two rows of one path": f"a.py,{SHA},0\na.py,,\n",
    "NUL": "a.py\x00,,\n,\n",
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_are_refused(case: str) -> None:
    with pytest.raises(ArchiveError):
        Record.parse(WRONG[case].encode(), NAME)


def test_bytes_that_are_no_utf8_are_refused() -> None:
    with pytest.raises(ArchiveError, match="UTF-8"):
        Record.parse(b"\xff,,\n", NAME)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_changed_rows_change(end: str) -> None:
    rows = [
        f"a.py,{SHA},0",
        '"quoted.py",,',  # needless quotes stay
        f"lib.so,{SHA},0",
        f"old.json,{SHA},0",
        f"{NAME},,",
        f"z.py,{SHA},0",
    ]
    record = Record.parse(end.join([*rows, ""]).encode(), NAME)
    new = RecordEntry.of_sha256("lib.so", hashlib.sha256(b"new").hexdigest(), 3)
    added = RecordEntry.of_sha256("a,b.json", EMPTY.hexdigest(), 0)
    text = record.rewritten({"a,b.json": added, "lib.so": new}, {"old.json"}).decode()
    assert text.split(end) == [
        rows[0],
        rows[1],
        "lib.so,sha256=EVB6Di9eadXfpApiob17buV-a82FxnybhDGzb_8hxDc,3",
        f'"a,b.json",{SHA},0',
        rows[4],
        rows[5],
        "",
    ]


def test_a_last_row_without_line_end_is_not_joined_to_an_added_one() -> None:
    record = Record.parse(f"a.py,{SHA},0".encode(), NAME)
    added = RecordEntry.of_sha256("b.json", EMPTY.hexdigest(), 0)
    assert record.rewritten({"b.json": added}, ()).decode() == f"a.py,{SHA},0\nb.json,{SHA},0\n"


def test_members_without_a_row_are_found() -> None:
    record = Record.parse(f"a.py,{SHA},0\n{NAME},,\n".encode(), NAME)
    record.check_lists(["a.py", NAME, "x.jws"], {"x.jws"})
    with pytest.raises(ArchiveError, match=r"row for b\.py"):
        record.check_lists(["a.py", "b.py"], ())


def test_a_hash_that_cannot_be_checked_is_refused() -> None:
    record = Record.parse(b"none.so,,\nweak.so,md5=1B2M2Y8AsgTpgAmY7PhCfg,0\n", NAME)
    with pytest.raises(ArchiveError, match="no usable hash"):
        record.expected("none.so")
    with pytest.raises(ArchiveError, match=r"no usable hash.*md5"):
        check_content(record.expected("weak.so"), [])


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_a_member_is_compared_with_its_row(algorithm: str) -> None:
    data = [b"some ", b"content"]
    entry = RecordEntry("x.so", algorithm, hashlib.new(algorithm, b"some content").digest(), 12)
    assert check_content(entry, data) == hashlib.sha256(b"some content").hexdigest()
    with pytest.raises(ArchiveError, match="size"):
        check_content(entry, [*data, b"!"])
    with pytest.raises(ArchiveError, match="hash"):
        check_content(entry, [b"some Content"])


def test_a_member_without_a_row_or_a_hash_is_only_hashed() -> None:
    for entry in (None, RecordEntry("x.so", None, None, None)):
        assert check_content(entry, [b""]) == EMPTY.hexdigest()


paths = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1)


@given(st.dictionaries(paths, st.tuples(st.binary(min_size=32, max_size=32), st.integers(0, 1 << 70))))
def test_build_then_parse_is_the_identity(rows: dict[str, tuple[bytes, int]]) -> None:
    entries = [RecordEntry(path, "sha256", digest, size) for path, (digest, size) in rows.items()]
    text = "".join(entry.to_row() for entry in entries)
    assert list(Record.parse(text.encode(), NAME).entries.values()) == entries
    assert [row[0] for row in csv.reader(io.StringIO(text, newline=""))] == list(rows)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_record_or_an_error_of_ours(data: bytes) -> None:
    try:
        record = Record.parse(data, NAME)
    except WheelslimError:
        return
    again = Record.parse(record.rewritten({}, ()), NAME)
    assert again.entries == record.entries
