"""``wheelslim prune`` as people run it: a wheel in, a wheel out, or one message and an exit code."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from builders import fatbin
from builders.library import CudaLibrary, Embedded
from builders.wheel import Member, Wheel
from judges import installers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIBRARY = "cuda_demo/libdemo.so"
TAGGED = "cuda_demo-1.0-0_sm86-py3-none-manylinux_2_28_x86_64.whl"


def wheelslim(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80"}
    environment.pop("WHEELSLIM_DEBUG", None)
    return subprocess.run(
        [sys.executable, "-m", "wheelslim", *map(str, words)],
        capture_output=True, text=True, cwd=cwd, env=environment, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture
def wheel(corpus: Callable[[str], Path], tmp_path: Path) -> Path:
    library = corpus("many_containers").read_bytes()
    files: dict[str, Member | bytes] = {
        "cuda_demo/__init__.py": b"",
        "cuda_demo/data.bin": Member(bytes(range(256)) * 40, stored=True),
        LIBRARY: Member(library, mode=0o755),
        "cuda_demo/run.sh": Member(b"#!/bin/sh\n", mode=0o755),
        "cuda_demo/gr\u00fc\u00dfe.txt": b"hello",
    }
    (tmp_path / "in").mkdir()
    return Wheel(files).write(tmp_path / "in")


def test_a_wheel_is_slimmed_and_everything_else_is_the_same(wheel: Path, tmp_path: Path) -> None:
    before = wheel.read_bytes()
    result = wheelslim("prune", "--arch", "sm_86", wheel, "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert wheel.read_bytes() == before
    out = tmp_path / "out" / TAGGED
    assert [path.name for path in (tmp_path / "out").iterdir()] == [TAGGED]
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(out) as new:
        assert new.testzip() is None
        changed = {LIBRARY, "cuda_demo-1.0.dist-info/RECORD", "cuda_demo-1.0.dist-info/WHEEL"}
        stamp = "cuda_demo-1.0.dist-info/wheelslim.json"
        names = old.namelist()
        assert new.namelist() == [*names[:-1], stamp, names[-1]]
        for name in names:
            one, other = old.getinfo(name), new.getinfo(name)
            assert (one.date_time, one.external_attr, one.compress_type) == (
                other.date_time, other.external_attr, other.compress_type,
            )  # fmt: skip
            assert (old.read(name) == new.read(name)) == (name not in changed)
        assert new.getinfo(LIBRARY).file_size < old.getinfo(LIBRARY).file_size
        assert b"\nBuild: 0_sm86\n" in new.read("cuda_demo-1.0.dist-info/WHEEL")
        said = json.loads(new.read(stamp))
        assert said["targets"] == ["sm_86"]
        assert said["source_sha256"] == hashlib.sha256(before).hexdigest()
        account = said["libraries"][LIBRARY]
        assert account["size_after"] == new.getinfo(LIBRARY).file_size
        assert account["sha256_after"] == hashlib.sha256(new.read(LIBRARY)).hexdigest()
        assert "sm_86" not in account["dropped_entries"]
        assert account["dropped_entries"]["sm_90"] > 0


def test_the_result_installs_with_the_ordinary_tools(wheel: Path, tmp_path: Path) -> None:
    assert wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out").returncode == 0
    out = tmp_path / "out" / TAGGED
    for install in (installers.pip_install, installers.uv_install):
        installed = install(out, tmp_path / install.__name__)
        mode = (installed / "cuda_demo" / "run.sh").stat().st_mode
        assert stat.S_IMODE(mode) & 0o111
        assert (installed / "cuda_demo" / "gr\u00fc\u00dfe.txt").read_bytes() == b"hello"


def test_the_same_input_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    digests = set()
    for jobs in ("1", "2", "7"):
        folder = tmp_path / f"jobs{jobs}"
        assert wheelslim("prune", "-a", "8.6", wheel, "-o", folder, "-j", jobs).returncode == 0
        digests.add(hashlib.sha256((folder / TAGGED).read_bytes()).hexdigest())
    assert len(digests) == 1


def test_a_second_run_on_the_result_finds_nothing_to_prune(wheel: Path, tmp_path: Path) -> None:
    assert wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out").returncode == 0
    again = wheelslim("prune", "-a", "sm_86", tmp_path / "out" / TAGGED, "-o", tmp_path / "again")
    assert again.returncode == 0
    assert "nothing to prune" in again.stdout
    assert not any((tmp_path / "again").iterdir())


def test_an_odd_file_name_gets_the_proper_one(wheel: Path, tmp_path: Path) -> None:
    odd = wheel.rename(wheel.with_name("demo.whl"))
    assert wheelslim("prune", "-a", "sm_86", odd, "-o", tmp_path / "out").returncode == 0
    assert (tmp_path / "out" / TAGGED).exists()


def test_the_name_can_stay(wheel: Path, tmp_path: Path) -> None:
    assert wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path, "--no-build-tag").returncode == 0
    with zipfile.ZipFile(tmp_path / wheel.name) as new:
        assert b"Build:" not in new.read("cuda_demo-1.0.dist-info/WHEEL")


def test_a_dry_run_writes_nothing_and_says_the_same(wheel: Path, tmp_path: Path) -> None:
    dry = wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out", "--dry-run", "--json")
    assert dry.returncode == 0
    assert not (tmp_path / "out").exists()
    real = wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out", "--json")
    planned, done = json.loads(dry.stdout)["artifacts"], json.loads(real.stdout)["artifacts"]
    assert planned[0]["libraries"] == done[0]["libraries"]
    assert planned[0]["output"] is None


def test_an_existing_output_needs_force(wheel: Path, tmp_path: Path) -> None:
    words = ("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out")
    assert wheelslim(*words).returncode == 0
    first = (tmp_path / "out" / TAGGED).read_bytes()
    refused = wheelslim(*words)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert wheelslim(*words, "--force").returncode == 0
    assert (tmp_path / "out" / TAGGED).read_bytes() == first


def test_several_artifacts_go_on_after_one_that_is_broken(wheel: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"not a zip file at all, but long enough to look at")
    result = wheelslim("prune", "-a", "sm_86", broken, wheel, "-o", tmp_path / "out")
    assert result.returncode == 3
    assert "broken.whl" in result.stderr
    assert (tmp_path / "out" / TAGGED).exists()


def test_a_single_library_can_be_slimmed(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    library = corpus("many_containers")
    assert wheelslim("prune", "-a", "sm_86", library, "-o", tmp_path).returncode == 0
    out = tmp_path / library.name
    assert out.stat().st_size < library.stat().st_size
    assert stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE(library.stat().st_mode)


def test_a_target_that_nothing_supports(wheel: Path, tmp_path: Path) -> None:
    result = wheelslim("prune", "-a", "sm_86,sm_70", wheel, "-o", tmp_path / "out")
    assert result.returncode == 4
    assert "sm_70" in result.stderr
    assert "sm_90" in result.stderr
    assert not any((tmp_path / "out").iterdir())


def test_a_target_that_only_embedded_containers_serve(tmp_path: Path) -> None:
    """As in cuFFT: exit 4 would be wrong, and without --embedded that code simply stays."""
    outside = Embedded(".rodata", (fatbin.container([fatbin.entry("sm_86")]),))
    old = fatbin.container([fatbin.entry("sm_75", size=9000)])
    library = tmp_path / "libfft.so"
    library.write_bytes(CudaLibrary((old,), embedded=(outside,)).build().data)
    assert wheelslim("prune", "-a", "sm_86", library, "-o", tmp_path / "out").returncode == 0
    refused = wheelslim("prune", "-a", "sm_90", library, "-o", tmp_path / "other")
    assert refused.returncode == 4


def test_a_wheel_without_device_code(tmp_path: Path) -> None:
    plain = Wheel({"plain/__init__.py": b"answer = 42\n" * 200}, name="plain").write(tmp_path)
    result = wheelslim("prune", "-a", "sm_86", plain, "-o", tmp_path / "out")
    assert result.returncode == 0
    assert "nothing to prune" in result.stdout
    assert not any((tmp_path / "out").iterdir())
    assert wheelslim("prune", "-a", "sm_86", plain, "-o", tmp_path / "out", "--force").returncode == 0
    assert any((tmp_path / "out").iterdir())


def without_record(path: Path) -> None:
    with zipfile.ZipFile(path) as old:
        members = {info: old.read(info) for info in old.infolist() if not info.filename.endswith("/RECORD")}
    with zipfile.ZipFile(path, "w") as new:
        for info, data in members.items():
            new.writestr(info, data)


def wrong_record_hash(path: Path) -> None:
    with zipfile.ZipFile(path) as old:
        members = {info: old.read(info) for info in old.infolist()}
    with zipfile.ZipFile(path, "w") as new:
        for info, data in members.items():
            if info.filename.endswith("/RECORD"):
                rows = data.decode().splitlines()
                rows = [
                    r if not r.startswith(LIBRARY) else f"{LIBRARY},sha256={'A' * 43},{195792}" for r in rows
                ]
                new.writestr(info, "\n".join(rows) + "\n")
            else:
                new.writestr(info, data)


def unlisted_member(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("cuda_demo/stranger.py", b"pass\n")


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])


def damaged_member(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(LIBRARY)
    data = bytearray(path.read_bytes())
    data[info.header_offset + 30 + len(LIBRARY) + info.compress_size // 2] ^= 0x55
    path.write_bytes(bytes(data))


def encrypted(path: Path) -> None:
    data = path.read_bytes().replace(b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x01\x00")
    path.write_bytes(
        data.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00")
    )


def no_dist_info(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("cuda_demo/__init__.py", b"")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without_record, "RECORD"),
        (wrong_record_hash, LIBRARY),
        (unlisted_member, "stranger.py"),
        (truncated, "zip"),
        (damaged_member, LIBRARY),
        (encrypted, "encrypted"),
        (no_dist_info, "dist-info"),
    ],
)
def test_bad_wheels_end_in_one_message(
    wheel: Path, tmp_path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    spoil(wheel)
    before = wheel.read_bytes()
    result = wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out")
    assert result.returncode == 3, result.stderr
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    first, *advice = result.stderr.splitlines()
    assert first.startswith("wheelslim: ")
    assert all(line.startswith("  ") for line in advice)
    assert wheel.read_bytes() == before
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("prune", "-a", "sm_999", "WHEEL"), 2, "sm_999"),
        (("prune", "WHEEL"), 2, "--arch"),
        (("prune", "-a", "sm_86"), 2, "artifacts"),
        (("prune", "-a", "sm_86", "/nowhere/at-all.whl"), 5, "at-all.whl"),
    ],
)
def test_wrong_words(wheel: Path, tmp_path: Path, words: tuple[str, ...], code: int, says: str) -> None:
    result = wheelslim(*(str(wheel) if word == "WHEEL" else word for word in words), cwd=tmp_path)
    assert result.returncode == code
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_no_space(wheel: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", full], check=False)
    if mounted.returncode:
        pytest.skip("no right to mount a small tmpfs")
    try:
        result = wheelslim("prune", "-a", "sm_86", wheel, "-o", full / "out")
        assert result.returncode == 5
        assert "space" in result.stderr
        assert not any((full / "out").iterdir())
    finally:
        subprocess.run(["umount", full], check=True)


def test_a_library_that_was_cut_off_is_refused(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(corpus("many_archs").read_bytes()[:40_000])
    result = wheelslim("prune", "-a", "sm_86", library, "-o", tmp_path / "out")
    assert result.returncode == 3
    assert result.stderr.startswith(f"wheelslim: {library}, member lib.so, offset 0x")
    assert "passes the end of the file" in result.stderr
    assert not any((tmp_path / "out").glob("*"))


def test_a_file_that_is_no_code_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("nothing of the kind" * 20)
    result = wheelslim("prune", "-a", "sm_86", text, "-o", tmp_path / "out")
    assert result.returncode == 3
    assert "notes.txt" in result.stderr


def test_ptx_that_is_not_there_is_told(wheel: Path, tmp_path: Path) -> None:
    """The corpus library holds cubins only, so +PTX keeps nothing and compute_90 names nothing."""
    forward = wheelslim("prune", "-a", "8.6+PTX", wheel, "-o", tmp_path / "out", "--dry-run")
    assert forward.returncode == 0
    assert "no PTX to keep" in forward.stdout
    named = wheelslim("prune", "-a", "compute_90", wheel, "-o", tmp_path / "out")
    assert named.returncode == 4
    assert "compute_90" in named.stderr
    none = wheelslim("prune", "-a", "compute_90", "--ptx", "none", wheel, "-o", tmp_path / "out")
    assert none.returncode == 0
    assert "no GPU can run the result" in none.stdout


def test_ptx_for_later_gpus_only_is_told(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    result = wheelslim("prune", "-a", "8.6+PTX", corpus("many_archs"), "-o", tmp_path / "out")
    assert result.returncode == 0
    assert "PTX only from compute_120 on" in result.stdout


def test_a_literal_filter_proves_the_targets_that_it_does_not_lose(wheel: Path, tmp_path: Path) -> None:
    kept = wheelslim("prune", "-a", "sm_86", "--exact", wheel, "-o", tmp_path / "kept", "--json")
    proof = json.loads(kept.stdout)["artifacts"][0]["proof"]
    assert proof["choices"] == proof["containers"] > 0


def test_what_matches_nothing_is_told(wheel: Path, tmp_path: Path) -> None:
    words = ("--drop", "unused", "--drop-glob", "*.nothing")
    result = wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out", *words)
    assert "judged in environments only" in result.stdout
    assert "*.nothing matches nothing" in result.stdout
