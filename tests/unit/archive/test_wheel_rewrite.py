"""Rewriting a wheel: what changes, what does not, and what goes wrong."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import random
import threading
import time
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from builders.rewriters import MARK, CuttingRewriter, expected
from builders.wheel import Member, Wheel, record_hash
from wheelslim.archive import deflate, file_copy, inflate, scratch
from wheelslim.archive.artifact import MemberType
from wheelslim.archive.deflate import Compression
from wheelslim.archive.wheel import WheelArtifact
from wheelslim.archive.wheel_check import verify_wheel_container
from wheelslim.archive.wheel_rewrite import WheelOptions, rewrite_wheel
from wheelslim.errors import ArchiveError, StorageError, VerifyError, WheelslimError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelslim.rewriter import RewriteResult
    from wheelslim.source import Source

LIBRARY = MARK + random.Random(3).randbytes(300_000) + bytes(2_500_000) + b"the end"
SECOND = MARK + b"second" * 50_000
KEPT = MARK + b"kept" * 50_000
FILES: dict[str, Member | bytes] = {
    "demo/__init__.py": b"import this\n",
    "demo/lib/libone.so": Member(
        LIBRARY, mode=0o755, comment=b"big", extra=b"UT\x05\x00\x03\x01\x02\x03\x04"
    ),
    "demo/data.txt": b"text " * 3000,
    "demo/lib/libtwo.so": Member(SECOND, stored=True),
    "demo/lib/keep.so": KEPT,
    "demo/lib/keep_stored.so": Member(KEPT, stored=True),
    "demo/µ, comma.py": b"x = 1\n" * 300,
    "demo/tiny.so": MARK,
}
CHANGED = ("demo/lib/libone.so", "demo/lib/libtwo.so")
WHEEL = Wheel(FILES)
STAMP = f"{WHEEL.folder}/wheelslim.json"
RECORD = f"{WHEEL.folder}/RECORD"


def run(
    path: Path,
    target: Path,
    rewriter: CuttingRewriter | None = None,
    *,
    build_tag: str | None = "0_sm80",
    compression: Compression = Compression.DEFAULT,
    jobs: int = 2,
    check_input: bool = False,
    progress: Callable[[int], None] | None = None,
) -> RewriteResult:
    target.touch()
    with WheelArtifact(path) as artifact:
        options = WheelOptions(
            build_tag=build_tag,
            compression=compression,
            jobs=jobs,
            check_input=check_input,
            progress=progress,
        )
        result = rewrite_wheel(artifact, target, rewriter or CuttingRewriter(), options)
        changed = {one.name for one in result.changed}
        for read_back in ((), result.changed):
            verify_wheel_container(
                artifact,
                target,
                changed,
                set(result.dropped),
                {artifact.stamp_name},
                read_back=read_back,
            )
    return result


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return WHEEL.write(tmp_path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "x.whl"


def assert_record_is_true(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(io.StringIO(archive.read(name).decode(), newline="")))
        listed = [row[0] for row in rows]
        assert sorted(listed) == sorted(one for one in archive.namelist() if not one.endswith("/"))
        assert listed.index(name) == len(listed) - 1
        for member, digest, size in rows:
            data = archive.read(member)
            assert member == name or (digest, int(size)) == (record_hash(data), len(data))


def test_changed_members_change_and_the_others_keep_their_bytes(wheel: Path, target: Path) -> None:
    rewriter = CuttingRewriter()
    result = run(wheel, target, rewriter)
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(target) as after:
        assert after.testzip() is None
        names = before.namelist()
        names.insert(names.index(RECORD), STAMP)
        assert after.namelist() == names
        for info in before.infolist():
            other = after.getinfo(info.filename)
            assert (other.date_time, other.external_attr) == (info.date_time, info.external_attr)
            assert (other.comment, other.extra, other.compress_type) == (
                info.comment,
                info.extra,
                info.compress_type,
            )
            if info.filename in CHANGED:
                assert after.read(other) == expected(before.read(info))
            elif not info.filename.endswith(("/RECORD", "/WHEEL")):
                assert raw(target, other) == raw(wheel, info)
        assert after.read(f"{WHEEL.folder}/WHEEL").endswith(b"x86_64\nBuild: 0_sm80\n")
        assert json.loads(after.read(STAMP)) == {"changed": list(CHANGED)}
        assert after.getinfo(STAMP).date_time == before.getinfo(RECORD).date_time
        assert result.installed_before == sum(info.file_size for info in before.infolist())
        assert result.installed_after == sum(info.file_size for info in after.infolist())
    assert_record_is_true(target)
    assert sorted(rewriter.planned) == sorted([*CHANGED, "demo/lib/keep.so", "demo/lib/keep_stored.so"])
    assert rewriter.confirmed == list(CHANGED)
    one = result.changed[0]
    assert (one.size_before, one.sha256_before) == (len(LIBRARY), hashlib.sha256(LIBRARY).hexdigest())
    assert one.size_after == len(expected(LIBRARY))
    assert one.sha256_after == hashlib.sha256(expected(LIBRARY)).hexdigest()
    assert result.notices == ()


def raw(path: Path, info: zipfile.ZipInfo) -> bytes:
    """Everything of a member from its local header to the end of its data."""
    data = path.read_bytes()[info.header_offset :]
    names = int.from_bytes(data[26:28], "little") + int.from_bytes(data[28:30], "little")
    return data[: 30 + names + info.compress_size]


def test_the_rewriter_is_asked_about_files_alone_and_never_about_tiny_ones(wheel: Path, target: Path) -> None:
    rewriter = CuttingRewriter()
    run(wheel, target, rewriter)
    assert "demo/tiny.so" not in rewriter.asked
    assert not [name for name in rewriter.asked if name.startswith(WHEEL.folder)]
    assert "demo/data.txt" in rewriter.asked


@pytest.mark.parametrize("compression", Compression)
def test_the_same_input_gives_the_same_bytes_whatever_the_jobs(
    compression: Compression, wheel: Path, target: Path
) -> None:
    seen = set()
    for jobs in (1, 2, 7):
        run(wheel, target, jobs=jobs, compression=compression)
        seen.add(hashlib.sha256(target.read_bytes()).hexdigest())
    assert len(seen) == 1


def test_nothing_to_change_keeps_everything_but_the_stamp(tmp_path: Path, target: Path) -> None:
    path = Wheel({"demo/keep.so": KEPT}).write(tmp_path)
    result = run(path, target, build_tag=None)
    assert result.changed == ()
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(target) as after:
        for name in before.namelist():
            if not name.endswith("RECORD"):
                assert raw(target, after.getinfo(name)) == raw(path, before.getinfo(name))


def test_slimming_twice_replaces_the_stamp(wheel: Path, target: Path, tmp_path: Path) -> None:
    run(wheel, target)
    again = tmp_path / "again.whl"
    run(target, again)
    with zipfile.ZipFile(target) as first, zipfile.ZipFile(again) as second:
        assert second.namelist() == first.namelist()
        assert second.read(f"{WHEEL.folder}/WHEEL") == first.read(f"{WHEEL.folder}/WHEEL")
    assert_record_is_true(again)


@pytest.mark.parametrize("member", ["wheelslim.json/x", "wheelslim.json/"])
def test_a_directory_in_the_place_of_the_stamp_is_refused(tmp_path: Path, target: Path, member: str) -> None:
    files = {"demo/lib.so": MARK + bytes(3000)}
    with pytest.raises(ArchiveError, match="its name is taken"):
        run(Wheel(files, dist_info={member: b""}).write(tmp_path), target)


def test_dropped_members_leave_no_trace(wheel: Path, target: Path) -> None:
    gone = frozenset({"demo/data.txt", "demo/µ, comma.py", RECORD, f"{WHEEL.folder}/METADATA"})
    result = run(wheel, target, CuttingRewriter(dropping=gone))
    assert result.dropped == ("demo/data.txt", "demo/µ, comma.py"), "what the wheel needs stays"
    with zipfile.ZipFile(target) as archive:
        assert not set(result.dropped) & set(archive.namelist())
    assert_record_is_true(target)


def test_signatures_of_the_record_go_with_a_notice(tmp_path: Path, target: Path) -> None:
    path = Wheel(FILES, dist_info={"RECORD.jws": b"{}", "RECORD.p7s": b"x"}).write(tmp_path)
    result = run(path, target)
    assert result.dropped == (f"{RECORD}.jws", f"{RECORD}.p7s")
    assert [notice.split()[0] for notice in result.notices] == list(result.dropped)
    assert_record_is_true(target)


def test_bytes_before_the_archive_are_kept_with_a_notice(tmp_path: Path, target: Path) -> None:
    path = WHEEL.write(tmp_path)
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    result = run(path, target)
    assert target.read_bytes().startswith(b"#!/bin/sh\nPK")
    assert [notice.split(" bytes")[0] for notice in result.notices] == ["10"]
    assert_record_is_true(target)


def test_the_name_is_derived_where_the_file_is_named_otherwise(tmp_path: Path) -> None:
    with WheelArtifact(WHEEL.write(tmp_path, "torch.whl")) as artifact:
        assert str(artifact.name) == WHEEL.file_name


def test_a_record_that_is_first_in_the_directory_stays_first(tmp_path: Path, target: Path) -> None:
    path = WHEEL.write(tmp_path)
    other = tmp_path / f"first-{WHEEL.file_name}"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as copy:
        for name in [RECORD, *[name for name in source.namelist() if name != RECORD]]:
            copy.writestr(source.getinfo(name), source.read(name))
    other = other.rename(path)
    run(other, target)
    with zipfile.ZipFile(target) as archive:
        assert archive.namelist()[:2] == [STAMP, RECORD]
        assert archive.testzip() is None


def test_progress_adds_up_to_the_size_of_the_wheel(wheel: Path, target: Path) -> None:
    steps: list[int] = []
    run(wheel, target, progress=steps.append)
    assert sum(steps) == wheel.stat().st_size
    assert min(steps) >= 0


def refuses(path: Path, target: Path, match: str, **options: bool) -> WheelslimError:
    with pytest.raises(WheelslimError, match=match) as caught:
        run(path, target, **options)  # type: ignore[arg-type]
    assert str(path) in str(caught.value)
    assert target.parent.is_dir()
    assert [one.name for one in target.parent.iterdir()] == [target.name], "no scratch file is left"
    return caught.value


BAD_RECORDS: dict[str, tuple[dict[str, str | None], str]] = {
    "no row": ({"demo/data.txt": None}, "does not list"),
    "wrong hash": ({CHANGED[0]: f"{CHANGED[0]},{record_hash(b'')},{len(LIBRARY)}"}, "hash that RECORD"),
    "wrong SHA-512": (
        {CHANGED[0]: f"{CHANGED[0]},sha512={'A' * 86},{len(LIBRARY)}"},
        "hash that RECORD",
    ),
    "wrong size": ({CHANGED[0]: f"{CHANGED[0]},{record_hash(LIBRARY)},7"}, "size that RECORD"),
    "no hash": ({CHANGED[1]: f"{CHANGED[1]},,"}, "no usable hash"),
    "weak hash": ({CHANGED[1]: f"{CHANGED[1]},md5=1B2M2Y8AsgTpgAmY7PhCfg,5"}, "no usable hash"),
    "WHEEL": ({f"{WHEEL.folder}/WHEEL": f"{WHEEL.folder}/WHEEL,{record_hash(b'')},"}, "hash that RECORD"),
    "no CSV": ({"demo/data.txt": "demo/data.txt,a"}, "row does not have"),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_a_record_that_lies_about_what_is_rewritten_is_refused(
    case: str, tmp_path: Path, target: Path
) -> None:
    rows, match = BAD_RECORDS[case]
    error = refuses(Wheel(FILES, in_record=rows).write(tmp_path), target, match)
    assert isinstance(error, ArchiveError)
    assert error.exit_code == 3


def test_members_that_stay_are_read_only_when_asked(tmp_path: Path, target: Path) -> None:
    name = "demo/data.txt"
    path = Wheel(FILES, in_record={name: f"{name},{record_hash(b'')},15000"}).write(tmp_path)
    run(path, target)
    target.unlink()
    refuses(path, target, "hash that RECORD", check_input=True)


def test_a_wrong_crc_of_a_stored_member_is_found(tmp_path: Path, target: Path) -> None:
    path = WHEEL.write(tmp_path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        crc = archive.getinfo(CHANGED[1]).CRC.to_bytes(4, "little")
    assert data.count(crc) == 2
    path.write_bytes(data.replace(crc, b"\x01\x02\x03\x04"))
    refuses(path, target, "CRC")


def test_a_failed_confirmation_is_an_error(wheel: Path, target: Path) -> None:
    target.touch()
    with (
        WheelArtifact(wheel) as artifact,
        pytest.raises(VerifyError, match=r"libtwo\.so.*not what was planned"),
    ):
        rewrite_wheel(artifact, target, CuttingRewriter(wrong=CHANGED[1]), WheelOptions())
    assert [one.name for one in target.parent.iterdir()] == [target.name]


def test_what_is_written_is_read_back_from_the_file(
    wheel: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = deflate.deflate

    def damaging(blocks: list[bytes], write: Callable[[bytes], None], *rest: object) -> object:
        return real(blocks, lambda data: write(data[:-20] + bytes(20)), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("wheelslim.archive.changed_member.deflate", damaging)
    target.touch()
    with WheelArtifact(wheel) as artifact, pytest.raises(VerifyError):
        rewrite_wheel(artifact, target, CuttingRewriter(), WheelOptions())


@pytest.mark.parametrize("error", [ValueError("boom"), KeyboardInterrupt()])
def test_an_error_of_the_rewriter_stops_all_threads(error: BaseException, wheel: Path, target: Path) -> None:
    def fail(name: str, _: Source) -> None:
        if name == CHANGED[1]:
            raise error

    before = threading.active_count()
    target.touch()
    with WheelArtifact(wheel) as artifact, pytest.raises(type(error)):
        rewrite_wheel(artifact, target, CuttingRewriter(before_plan=fail), WheelOptions())
    assert threading.active_count() == before
    assert [one.name for one in target.parent.iterdir()] == [target.name]


def test_no_space_for_scratch_is_a_storage_error(
    wheel: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes, offset: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wheelslim.archive.inflated.write_at", full)
    target.touch()
    with WheelArtifact(wheel) as artifact, pytest.raises(StorageError, match="--scratch-dir"):
        rewrite_wheel(artifact, target, CuttingRewriter(), WheelOptions())


def test_at_most_two_originals_lie_in_scratch(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[scratch.ScratchFile] = []
    real = scratch.ScratchFile.__init__

    def counting(self: scratch.ScratchFile, directory: Path) -> None:
        real(self, directory)
        made.append(self)

    monkeypatch.setattr(scratch.ScratchFile, "__init__", counting)
    files: dict[str, Member | bytes] = {
        f"demo/{number}.so": MARK + bytes([number]) * 200_000 for number in range(12)
    }
    rewriter = CuttingRewriter(before_plan=lambda name, source: time.sleep(0.005))
    result = run(Wheel(files).write(tmp_path), target, rewriter)
    assert len(result.changed) == 12
    assert len(made) <= 2


def test_what_stays_at_a_glance_takes_no_scratch_space(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int | None] = []
    real = scratch.Scratch.take

    def counting(self: scratch.Scratch, size: int | None = None) -> scratch.ScratchFile:
        taken.append(size)
        return real(self, size)

    monkeypatch.setattr(scratch.Scratch, "take", counting)
    noise = random.Random(8).randbytes(200_000)
    files: dict[str, Member | bytes] = {
        "demo/stays.so": MARK + b"host code " * 90_000 + b"I stay",
        "demo/goes.so": MARK + b"host code " * 70_000 + b"I go  ",
        "demo/dense.so": MARK + noise + b"I stay",
        "demo/stored.so": Member(MARK + b"host code " * 20_000 + b"I stay", stored=True),
    }
    rewriter = CuttingRewriter(last_words=b"I stay")
    result = run(Wheel(files).write(tmp_path), target, rewriter)
    assert sorted(rewriter.glanced) == ["demo/goes.so", "demo/stays.so"], "not what is likely to change"
    assert sorted(rewriter.planned) == ["demo/dense.so", "demo/goes.so", "demo/stored.so"]
    assert [one.name for one in result.changed] == ["demo/goes.so", "demo/dense.so", "demo/stored.so"]
    assert sorted(size or 0 for size in taken) == [200_010, 700_010]


def test_originals_in_scratch_are_no_larger_than_the_largest(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[scratch.ScratchFile] = []
    most = 0
    real_init, real_write = scratch.ScratchFile.__init__, file_copy.write_at

    def keeping(self: scratch.ScratchFile, directory: Path) -> None:
        real_init(self, directory)
        made.append(self)

    def counting(fd: int, data: bytes, offset: int) -> None:
        nonlocal most
        real_write(fd, data, offset)
        total = 0
        for file in made:
            with suppress(OSError):  # closed meanwhile
                total += os.fstat(file.fd).st_size
        most = max(most, total)

    monkeypatch.setattr(scratch.ScratchFile, "__init__", keeping)
    monkeypatch.setattr("wheelslim.archive.inflated.write_at", counting)
    sizes = (100_000, 100_000, 400_000, 100_000, 90_000, 300_000, 100_000)
    files: dict[str, Member | bytes] = {
        f"demo/{number}.so": MARK + random.Random(number).randbytes(size - 4)
        for number, size in enumerate(sizes)
    }
    assert len(run(Wheel(files).write(tmp_path), target).changed) == len(sizes)
    assert most == 400_000


def test_unchanged_members_are_never_inflated(
    wheel: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inflated_names: list[str] = []
    real = inflate.member_blocks

    def spy(archive: object, entry: object) -> object:
        inflated_names.append(entry.name)  # type: ignore[attr-defined]
        return real(archive, entry)  # type: ignore[arg-type]

    monkeypatch.setattr("wheelslim.archive.inflated.member_blocks", spy)
    run(wheel, target)
    assert sorted(inflated_names) == ["demo/lib/keep.so", "demo/lib/libone.so"], "candidates alone"


NO_WHEEL: dict[str, tuple[dict[str, bytes], str]] = {
    "no dist-info": ({"demo/x.py": b""}, "exactly one dist-info"),
    "two dist-infos": ({"a-1.dist-info/WHEEL": b"", "b-1.dist-info/WHEEL": b""}, "exactly one dist-info"),
    "nested dist-info": ({"vendor/a-1.dist-info/WHEEL": b""}, "exactly one dist-info"),
    "no RECORD": ({"a-1.dist-info/WHEEL": b"", "a-1.dist-info/METADATA": b""}, "no RECORD"),
    "no WHEEL": ({"a-1.dist-info/RECORD": b"", "a-1.dist-info/METADATA": b""}, "no WHEEL"),
    "no METADATA": ({"a-1.dist-info/RECORD": b"", "a-1.dist-info/WHEEL": b""}, "no METADATA"),
}


@pytest.mark.parametrize("case", NO_WHEEL)
def test_what_is_no_wheel_is_refused(case: str, tmp_path: Path) -> None:
    files, match = NO_WHEEL[case]
    path = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(ArchiveError, match=match) as caught:
        WheelArtifact(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        WheelArtifact(tmp_path / "none.whl")


def test_walk_shows_every_member_and_opens_those_wanted(wheel: Path) -> None:
    with WheelArtifact(wheel) as artifact:
        seen = []
        wanted = {}
        for member, source in artifact.walk(lambda member, head: head.startswith(MARK)):
            seen.append((member.name, member.size, member.type))
            if source is not None:
                wanted[member.name] = source.read(0, source.size)
        with zipfile.ZipFile(wheel) as archive:
            assert seen == [(info.filename, info.file_size, MemberType.FILE) for info in archive.infolist()]
            assert wanted == {
                name: archive.read(name) for name in archive.namelist() if archive.read(name)[:4] == MARK
            }
        assert artifact.read("demo/__init__.py") == b"import this\n"
        with pytest.raises(ArchiveError, match="no such member"):
            artifact.read("demo")
