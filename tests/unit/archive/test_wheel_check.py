"""The check of a written wheel finds each thing that the writer could do wrong."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from builders.rewriters import MARK, CuttingRewriter
from builders.wheel import Member, Wheel
from wheelslim.archive.wheel import WheelArtifact
from wheelslim.archive.wheel_check import verify_wheel_container
from wheelslim.archive.wheel_rewrite import WheelOptions, rewrite_wheel
from wheelslim.errors import VerifyError
from wheelslim.rewriter import ChangedMember

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIBRARY = "demo/lib.so"
TEXT = "demo/data.txt"
FILES: dict[str, Member | bytes] = {
    "demo/__init__.py": b"",
    LIBRARY: MARK + b"code" * 5000,
    TEXT: b"text " * 3000,
    "demo/other.txt": b"other " * 3000,
}
WHEEL = Wheel(FILES)
RECORD = f"{WHEEL.folder}/RECORD"
STAMP = f"{WHEEL.folder}/wheelslim.json"


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return WHEEL.write(tmp_path)


@pytest.fixture
def written(original: Path, tmp_path: Path) -> Path:
    target = tmp_path / "written.whl"
    target.touch()
    with WheelArtifact(original) as artifact:
        rewrite_wheel(artifact, target, CuttingRewriter(), WheelOptions(build_tag="0_sm80"))
    return target


def check(original: Path, written: Path, read_back: tuple[ChangedMember, ...] = ()) -> None:
    with WheelArtifact(original) as artifact:
        verify_wheel_container(artifact, written, {LIBRARY}, set(), {STAMP}, read_back=read_back)


def test_a_true_copy_passes(original: Path, written: Path) -> None:
    check(original, written)


def known(written: Path) -> ChangedMember:
    """What reading the library back would have given."""
    data = bytearray(written.read_bytes())
    with zipfile.ZipFile(written) as archive:
        content = archive.read(LIBRARY)
        start = data_start(data, archive.getinfo(LIBRARY))
    return ChangedMember(LIBRARY, 1, len(content), "", hashlib.sha256(content).hexdigest(), start)


def test_what_was_read_back_is_compared_with_the_headers_and_record(original: Path, written: Path) -> None:
    true = known(written)
    check(original, written, (true,))
    for wrong, match in (
        (replace(true, read_back_at=(true.read_back_at or 0) + 1), "place"),
        (replace(true, size_after=true.size_after + 1), "size"),
        (replace(true, sha256_after="00" * 32), "row of a rewritten member"),
    ):
        with pytest.raises(VerifyError, match=match):
            check(original, written, (wrong,))


@pytest.mark.parametrize("offset", [6, 8, 14, 18, 22])
def test_a_local_header_that_differs_is_found(offset: int, original: Path, written: Path) -> None:
    true = known(written)

    def change(data: bytearray, archive: zipfile.ZipFile) -> None:
        data[archive.getinfo(LIBRARY).header_offset + offset] ^= 4

    patch(written, change)
    for read_back in ((), (true,)):
        with pytest.raises(VerifyError, match="local header"):
            check(original, written, read_back)


def patch(path: Path, change: Callable[[bytearray, zipfile.ZipFile], None]) -> None:
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        change(data, archive)
    path.write_bytes(data)


def data_start(data: bytearray, info: zipfile.ZipInfo) -> int:
    at = info.header_offset
    return (
        at
        + 30
        + int.from_bytes(data[at + 26 : at + 28], "little")
        + int.from_bytes(data[at + 28 : at + 30], "little")
    )


def central(data: bytearray, name: str) -> int:
    return data.rindex(name.encode()) - 46


def test_a_changed_byte_of_an_unchanged_member_is_found(original: Path, written: Path) -> None:
    def change(data: bytearray, archive: zipfile.ZipFile) -> None:
        data[data_start(data, archive.getinfo(TEXT)) + 9] ^= 1

    patch(written, change)
    with pytest.raises(VerifyError, match="not the same bytes"):
        check(original, written)


def test_a_changed_byte_of_a_rewritten_member_is_found(original: Path, written: Path) -> None:
    def change(data: bytearray, archive: zipfile.ZipFile) -> None:
        data[data_start(data, archive.getinfo(LIBRARY)) + 9] ^= 1

    patch(written, change)
    with pytest.raises(VerifyError, match=r"lib\.so"):
        check(original, written)


CENTRAL_FIELDS = {
    "date": (14, "date or attributes"),
    "mode": (40, "date or attributes"),
    "internal attributes": (36, "date or attributes"),
    "made by": (5, "date or attributes"),
    "flags": (9, "flags, CRC or sizes"),
    "CRC": (16, "flags, CRC or sizes"),
}


@pytest.mark.parametrize("field", CENTRAL_FIELDS)
def test_a_changed_fact_of_an_unchanged_member_is_found(field: str, original: Path, written: Path) -> None:
    offset, match = CENTRAL_FIELDS[field]

    def change(data: bytearray, _: zipfile.ZipFile) -> None:
        data[central(data, TEXT) + offset] ^= 2

    patch(written, change)
    with pytest.raises(VerifyError, match=match):
        check(original, written)


def repack(
    written: Path,
    *,
    order: Callable[[list[str]], list[str]] = lambda names: names,
    content: Callable[[str, bytes], bytes] = lambda name, data: data,
) -> None:
    """Write the wheel again with zipfile, in another order or with other content."""
    copy = written.with_suffix(".copy")
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(copy, "w") as target:
        for name in order(source.namelist()):
            info = source.getinfo(name) if name in source.namelist() else zipfile.ZipInfo(name)
            target.writestr(info, content(name, source.read(name) if name in source.namelist() else b""))
    shutil.move(copy, written)


ORDERS: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "member missing": (lambda names: [name for name in names if name != TEXT], "list of members"),
    "other order": (lambda names: [names[2], *names[:2], *names[3:]], "list of members"),
    "stamp missing": (lambda names: [name for name in names if name != STAMP], "added members"),
    "stranger": (lambda names: ["demo/virus.py", *names], "added members"),
}


@pytest.mark.parametrize("case", ORDERS)
def test_another_list_of_members_is_found(case: str, original: Path, written: Path) -> None:
    order, match = ORDERS[case]
    repack(written, order=order)
    with pytest.raises(VerifyError, match=match):
        check(original, written)


def without(text: bytes, part: bytes) -> bytes:
    return b"".join(line for line in text.splitlines(keepends=True) if part not in line)


def with_other_hash(text: bytes) -> bytes:
    before = f"{LIBRARY},sha256=".encode()
    return text.replace(before, before + b"A")


RECORDS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "row of an unchanged member": (lambda text: text.replace(b",15000\n", b",15001\n"), "row of RECORD"),
    "hash of the library": (with_other_hash, "rewritten member"),
    "row missing": (lambda text: without(text, b"demo/other"), "order of RECORD"),
    "other order": (lambda text: b"".join(reversed(text.splitlines(keepends=True))), "order of RECORD"),
    "stamp missing": (lambda text: without(text, b"wheelslim"), "RECORD's list"),
}


@pytest.mark.parametrize("case", RECORDS)
def test_a_record_that_is_not_true_is_found(case: str, original: Path, written: Path) -> None:
    edit, match = RECORDS[case]
    with zipfile.ZipFile(written) as archive:
        before = archive.read(RECORD)
    assert edit(before) != before
    repack(written, content=lambda name, data: edit(data) if name == RECORD else data)
    with pytest.raises(VerifyError, match=match):
        check(original, written)


def test_a_cut_off_result_is_found(original: Path, written: Path) -> None:
    written.write_bytes(written.read_bytes()[:-10])
    with pytest.raises(VerifyError, match="no sound zip"):
        check(original, written)
