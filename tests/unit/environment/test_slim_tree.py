"""A tree slimmed in place: what changes, what stays, and what the books say afterwards."""

from __future__ import annotations

import json
import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from builders import fatbin
from builders.environment_trees import (
    MANY,
    NO_SM_86,
    PLAIN,
    SMALL_GAIN,
    environment,
    facts,
    slim,
    temporaries,
)
from builders.installed import MTIME_NS, install, record_faults
from builders.library import CudaLibrary
from wheelslim.archive.record import Record
from wheelslim.environment.lock import locked
from wheelslim.environment.story import EnvironmentOptions, slim_tree
from wheelslim.errors import (
    ExitCode,
    StorageError,
    TargetNeverSupportedError,
    UsageError,
    VerifyError,
)
from wheelslim.groups.rules import make_drop_request
from wheelslim.plan import Request
from wheelslim.slim_rewriter import SlimRewriter
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = "torch/lib/libmany.so"
BLAS = "nvidia/blas/lib/libblas.so.13"


def test_libraries_shrink_and_nothing_else_changes(tmp_path: Path) -> None:
    site = environment(tmp_path)
    before = facts(tmp_path)
    report = slim(tmp_path)
    after = facts(tmp_path)
    prefix = "lib/python3.11/site-packages/"
    assert set(report.changed) == {prefix + LIBRARY, prefix + BLAS}
    assert (site / LIBRARY).stat().st_size < len(MANY)
    books = {f"{prefix}{name}-1.0.dist-info/RECORD" for name in ("torch", "nvidia_blas")}
    stamps = {f"{prefix}{name}-1.0.dist-info/wheelslim.json" for name in ("torch", "nvidia_blas")}
    different = {name for name in before if before[name] != after[name]}
    assert different == {*report.changed, *books}
    assert set(after) - set(before) == stamps
    assert report.exit_code == ExitCode.DONE
    assert report.prune.size_before == sum(one.size for one in before.values())
    assert report.prune.size_after == sum(one.size for one in after.values())
    assert temporaries(tmp_path) == []


def test_record_is_true_and_lists_the_stamp(tmp_path: Path) -> None:
    site = environment(tmp_path)
    old = (site / "torch-1.0.dist-info/RECORD").read_bytes()
    report = slim(site)
    assert record_faults(site) == []
    assert report.packages == ("nvidia_blas-1.0", "torch-1.0")
    new = (site / "torch-1.0.dist-info/RECORD").read_bytes()
    record = Record.parse(new, "torch-1.0.dist-info/RECORD")
    assert "torch-1.0.dist-info/wheelslim.json" in record.entries
    untouched = [row for row in old.splitlines() if LIBRARY.encode() not in row]
    assert [row for row in new.splitlines() if row in untouched] == untouched


def test_the_stamp_names_libraries_as_record_does(tmp_path: Path) -> None:
    site = environment(tmp_path)
    slim(tmp_path)
    stamp = json.loads((site / "torch-1.0.dist-info/wheelslim.json").read_text())
    assert stamp["targets"] == ["sm_86"]
    assert list(stamp["libraries"]) == [LIBRARY]
    account = stamp["libraries"][LIBRARY]
    assert account["size_before"] == len(MANY)
    assert account["size_after"] == (site / LIBRARY).stat().st_size


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    environment(tmp_path)
    slim(tmp_path)
    before = facts(tmp_path)
    report = slim(tmp_path)
    assert report.changed == ()
    assert report.packages == ()
    assert facts(tmp_path) == before


def test_a_narrower_run_keeps_what_the_stamp_knows_of_the_original(tmp_path: Path) -> None:
    site = environment(tmp_path)
    place = site / "torch-1.0.dist-info/wheelslim.json"
    slim(tmp_path, "sm_80,sm_86,sm_90")
    first = json.loads(place.read_text())["libraries"][LIBRARY]
    slim(tmp_path, "sm_86")
    stamp = json.loads(place.read_text())
    second = stamp["libraries"][LIBRARY]
    assert stamp["targets"] == ["sm_86"]
    assert second["sha256_before"] == first["sha256_before"]
    assert second["size_before"] == len(MANY)
    assert second["size_after"] < first["size_after"]
    one_go = tmp_path / "one_go"
    once = environment(one_go)
    slim(one_go, "sm_86")
    direct = json.loads((once / "torch-1.0.dist-info/wheelslim.json").read_text())["libraries"][LIBRARY]
    assert second["dropped_entries"] == direct["dropped_entries"]
    assert record_faults(site) == []


def test_a_dry_run_writes_nothing_and_says_what_a_run_would_do(tmp_path: Path) -> None:
    environment(tmp_path)
    before = facts(tmp_path)
    planned = slim(tmp_path, dry_run=True)
    assert facts(tmp_path) == before
    done = slim(tmp_path)
    sizes = {library.path: library.account.size_after for library in planned.prune.libraries}
    assert sizes == {library.path: library.account.size_after for library in done.prune.libraries}
    assert planned.prune.output is None
    assert planned.changed == ()


def test_mode_times_owner_and_attributes_stay(tmp_path: Path) -> None:
    site = environment(tmp_path)
    library = site / LIBRARY
    if os.geteuid() == 0:
        os.chown(library, 1234, 2345)
    library.chmod(0o4555)
    try:
        os.setxattr(library, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no user attributes")
    os.utime(library, ns=(MTIME_NS, MTIME_NS))
    before = library.stat()
    slim(tmp_path)
    after = library.stat()
    assert stat.S_IMODE(after.st_mode) == 0o4555
    assert (after.st_uid, after.st_gid, after.st_mtime_ns) == (before.st_uid, before.st_gid, MTIME_NS)
    assert os.getxattr(library, "user.note") == b"kept"
    assert after.st_ino != before.st_ino


def test_who_has_a_library_open_keeps_the_old_one(tmp_path: Path) -> None:
    site = environment(tmp_path)
    with (site / LIBRARY).open("rb") as running:
        slim(tmp_path)
        assert running.read() == MANY


def test_hard_links_outside_keep_the_old_content(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    site = environment(tmp_path / "env")
    os.link(site / LIBRARY, cache / "shared")
    report = slim(tmp_path / "env")
    assert (cache / "shared").read_bytes() == MANY
    assert (cache / "shared").stat().st_nlink == 1
    assert any("hard links outside" in notice for notice in report.prune.notices)
    assert record_faults(site) == []


def test_hard_links_inside_stay_linked_and_are_booked_under_each_name(tmp_path: Path) -> None:
    site = environment(tmp_path)
    install(site, "twin", {"twin/lib/libtwin.so": MANY})
    twin, library = site / "twin/lib/libtwin.so", site / LIBRARY
    twin.unlink()
    os.link(library, twin)
    report = slim(tmp_path)
    assert twin.stat().st_ino == library.stat().st_ino
    assert library.stat().st_nlink == 2
    assert len([name for name in report.changed if "libmany" in name or "libtwin" in name]) == 1
    assert record_faults(site) == []
    stamp = json.loads((site / "twin-1.0.dist-info/wheelslim.json").read_text())
    assert list(stamp["libraries"]) == ["twin/lib/libtwin.so"]
    assert report.prune.size_after == sum(
        {path.stat().st_ino: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}.values()
    )


def test_symbolic_links_inside_stay_and_those_to_the_outside_are_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "store" / "libshared.so"
    outside.parent.mkdir()
    outside.write_bytes(MANY)
    site = environment(tmp_path / "env")
    (site / "torch/lib/libmany.so.1").symlink_to("libmany.so")
    (site / "torch/lib/libshared.so").symlink_to(outside)
    (tmp_path / "env" / "lib64").symlink_to("lib")
    report = slim(tmp_path / "env")
    assert outside.read_bytes() == MANY
    assert (site / "torch/lib/libmany.so.1").is_symlink()
    assert (site / "torch/lib/libmany.so.1").stat().st_size < len(MANY)
    assert len(report.changed) == 2
    assert any("libshared.so" in notice for notice in report.prune.notices)


def test_a_directory_of_libraries_that_is_a_link_to_the_outside_is_named(tmp_path: Path) -> None:
    site = environment(tmp_path / "outside")
    (tmp_path / "env" / "lib").mkdir(parents=True)
    (tmp_path / "env" / "lib" / "site-packages").symlink_to(site)
    report = slim(tmp_path / "env")
    assert (site / LIBRARY).read_bytes() == MANY
    assert any("outside" in note and "lib/site-packages" in note for note in report.prune.notices)


def test_a_tree_may_be_given_through_a_symbolic_link(tmp_path: Path) -> None:
    environment(tmp_path / "env")
    (tmp_path / "link").symlink_to("env")
    assert len(slim(tmp_path / "link").changed) == 2


def test_a_part_of_an_environment_updates_the_books_above_it(tmp_path: Path) -> None:
    site = environment(tmp_path)
    report = slim(site / "torch")
    assert report.changed == ("lib/libmany.so",)
    assert report.packages == ("torch-1.0",)
    assert record_faults(site) == []
    assert (site / BLAS).read_bytes() == PLAIN


def test_a_path_that_record_spells_through_a_link_is_found(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site-packages"
    info = install(site, "odd", {"odd/libodd.so": MANY})
    (tmp_path / "lib64").symlink_to("lib")
    record = info / "RECORD"
    spelled = "../../lib64/site-packages/odd/libodd.so"
    record.write_text(record.read_text().replace("odd/libodd.so", spelled, 1))
    assert slim(tmp_path).packages == ("odd-1.0",)
    assert record_faults(site) == []
    assert spelled in record.read_text()


def test_caches_inside_the_tree_are_left_alone(tmp_path: Path) -> None:
    site = environment(tmp_path / "base")
    base = tmp_path / "base"
    (base / "CACHEDIR.TAG").write_text("uv writes one into virtual environments")
    for name in ("pkgs/urls.txt", "aaa/CACHEDIR.TAG"):
        (base / name).parent.mkdir(parents=True)
        (base / name).write_text("")
    for name in ("pkgs/torch-1.0/lib.so", "aaa/torch/lib.so"):
        (base / name).parent.mkdir()
        os.link(site / LIBRARY, base / name)
    report = slim(base)
    assert (base / "pkgs/torch-1.0/lib.so").read_bytes() == MANY
    assert (base / "aaa/torch/lib.so").read_bytes() == MANY
    assert (site / LIBRARY).stat().st_size < len(MANY)
    assert any("caches" in notice for notice in report.prune.notices)


def test_a_nested_environment_of_uv_is_no_cache(tmp_path: Path) -> None:
    environment(tmp_path / ".venv")
    (tmp_path / ".venv/CACHEDIR.TAG").write_text("")
    (tmp_path / ".venv/pyvenv.cfg").write_text("")
    assert len(slim(tmp_path).changed) == 2


def test_read_only_directories_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    site = environment(tmp_path)
    directory = site / "torch/lib"
    directory.chmod(0o555)
    try:
        report = slim(tmp_path)
    finally:
        directory.chmod(0o755)
    assert report.exit_code == ExitCode.IO
    assert [one.path for one in report.passed_over] == ["lib/python3.11/site-packages/" + LIBRARY]
    assert "read-only" in report.passed_over[0].reason
    assert (site / LIBRARY).read_bytes() == MANY
    assert (site / BLAS).stat().st_size < len(PLAIN)
    assert record_faults(site) == []
    assert not (site / "torch-1.0.dist-info/wheelslim.json").exists()
    assert [library.path for library in report.prune.with_device_code] == [
        "lib/python3.11/site-packages/" + BLAS
    ]


def test_a_read_only_file_in_a_writable_directory_is_slimmed(tmp_path: Path) -> None:
    site = environment(tmp_path)
    (site / LIBRARY).chmod(0o444)
    assert len(slim(tmp_path).changed) == 2
    assert stat.S_IMODE((site / LIBRARY).stat().st_mode) == 0o444


def test_a_library_whose_record_cannot_be_written_stays(tmp_path: Path) -> None:
    site = environment(tmp_path)
    info = site / "torch-1.0.dist-info"
    info.chmod(0o555)
    try:
        report = slim(tmp_path)
    finally:
        info.chmod(0o755)
    assert report.exit_code == ExitCode.IO
    assert (site / LIBRARY).read_bytes() == MANY


def test_a_library_whose_record_does_not_parse_stays(tmp_path: Path) -> None:
    site = environment(tmp_path)
    (site / "torch-1.0.dist-info/RECORD").write_text("only,two\n")
    report = slim(tmp_path)
    assert report.exit_code == ExitCode.UNSUPPORTED
    assert (site / LIBRARY).read_bytes() == MANY
    assert (site / BLAS).stat().st_size < len(PLAIN)
    assert "RECORD" in report.passed_over[0].reason


def test_a_distribution_without_record_is_slimmed_without_books(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    info = install(site, "debian", {"debian/lib.so": MANY}, record=False)
    report = slim(tmp_path)
    assert report.changed == ("site-packages/debian/lib.so",)
    assert report.packages == ()
    assert not (info / "wheelslim.json").exists()


def test_any_tree_will_do(tmp_path: Path) -> None:
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64/libcudart.so").write_bytes(MANY)
    (tmp_path / "tool").write_bytes(PLAIN)
    assert slim(tmp_path).changed == ("lib64/libcudart.so", "tool")


def test_a_tree_without_device_code_is_said_to_have_none(tmp_path: Path) -> None:
    (tmp_path / "readme").write_text("nothing " * 500)
    report = slim(tmp_path)
    assert report.changed == ()
    assert report.prune.with_device_code == ()
    assert report.exit_code == ExitCode.DONE


def test_a_target_that_nothing_supports_changes_nothing(tmp_path: Path) -> None:
    environment(tmp_path)
    before = facts(tmp_path)
    with pytest.raises(TargetNeverSupportedError, match="sm_70"):
        slim(tmp_path, "sm_86,sm_70")
    assert facts(tmp_path) == before


def test_libraries_that_never_had_code_for_a_target_are_normal(tmp_path: Path) -> None:
    site = environment(tmp_path)
    install(site, "hopper", {"hopper/lib.so": NO_SM_86})
    report = slim(tmp_path)
    assert report.exit_code == ExitCode.DONE
    assert any("sm_86" in notice and "hopper/lib.so" in notice for notice in report.prune.notices)
    assert len(report.changed) == 3


def test_a_library_that_would_save_no_page_keeps_its_inode(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(SMALL_GAIN)
    before = facts(tmp_path)
    report = slim(tmp_path)
    assert facts(tmp_path) == before
    (library,) = report.prune.libraries
    assert library.account.before == library.account.after
    assert library.account.size_before == library.account.size_after


def test_packages_limit_the_run(tmp_path: Path) -> None:
    site = environment(tmp_path)
    report = slim(tmp_path, packages=("NVIDIA.*",))
    assert report.packages == ("nvidia_blas-1.0",)
    assert (site / LIBRARY).read_bytes() == MANY


def test_an_unknown_package_is_refused_with_those_that_are_there(tmp_path: Path) -> None:
    environment(tmp_path)
    with pytest.raises(UsageError, match=r"jax.*numpy, nvidia-blas, torch"):
        slim(tmp_path, packages=("jax",))


def test_a_library_that_does_not_keep_its_promises_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = environment(tmp_path)

    def refuse(_self: object, name: str, _original: object, _written: object) -> None:
        if name.endswith("libmany.so"):
            raise VerifyError("planted")

    monkeypatch.setattr(SlimRewriter, "confirm", refuse)
    report = slim(tmp_path)
    assert report.exit_code == ExitCode.CHECK_FAILED
    assert (site / LIBRARY).read_bytes() == MANY
    assert len(report.changed) == 1
    assert temporaries(tmp_path) == []


def test_a_library_that_changes_underneath_is_left_to_whoever_changed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = environment(tmp_path)

    def interfere(_self: object, name: str, _original: object, _written: object) -> None:
        if name.endswith("libmany.so"):
            (site / LIBRARY).unlink()
            (site / LIBRARY).write_bytes(b"newer")

    monkeypatch.setattr(SlimRewriter, "confirm", interfere)
    report = slim(tmp_path)
    assert report.exit_code == ExitCode.IO
    assert (site / LIBRARY).read_bytes() == b"newer"
    assert "changed while" in report.passed_over[0].reason
    assert temporaries(tmp_path) == []


def test_dropped_files_leave_the_tree_and_the_books(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    headers = {f"torch/include/deep/{number}.h": b"//" for number in range(5)}
    install(site, "torch", {"torch/lib/libmany.so": MANY, "torch/__init__.py": b"", **headers})
    drop = make_drop_request("", ("torch/include/**",), None)
    planned = slim(tmp_path, drop=drop, dry_run=True)
    report = slim(tmp_path, drop=drop)
    assert set(report.prune.dropped) == {f"site-packages/{name}" for name in headers}
    assert planned.prune.dropped == report.prune.dropped
    assert not (site / "torch/include").exists()
    assert record_faults(site) == []
    stamp = json.loads((site / "torch-1.0.dist-info/wheelslim.json").read_text())
    assert stamp["dropped_members"] == sorted(headers)
    assert list(stamp["libraries"]) == [LIBRARY]
    assert report.prune.size_after == sum(one.size for one in facts(tmp_path).values())
    before = facts(tmp_path)
    slim(tmp_path, drop=drop)
    assert facts(tmp_path) == before


def test_a_library_that_is_dropped_is_not_slimmed_first(tmp_path: Path) -> None:
    site = environment(tmp_path)
    report = slim(tmp_path, drop=make_drop_request("", ("**/libmany.so",), None))
    assert not (site / LIBRARY).exists()
    assert report.changed == ("lib/python3.11/site-packages/" + BLAS,)
    assert record_faults(site) == []


def test_drops_are_limited_to_the_chosen_packages(tmp_path: Path) -> None:
    site = environment(tmp_path)
    drop = make_drop_request("", ("**/__init__.py",), None)
    report = slim(tmp_path, drop=drop, packages=("torch",))
    assert report.prune.dropped == ("lib/python3.11/site-packages/torch/__init__.py",)
    assert (site / "numpy/__init__.py").exists()


def test_metadata_is_never_dropped(tmp_path: Path) -> None:
    site = environment(tmp_path)
    slim(tmp_path, drop=make_drop_request("", ("**/METADATA", "**/RECORD", "**/*.py"), None))
    assert (site / "torch-1.0.dist-info/METADATA").exists()
    assert not (site / "torch/__init__.py").exists()
    assert record_faults(site) == []


def test_unused_libraries_are_told_of_whole_environments_only(tmp_path: Path) -> None:
    site = environment(tmp_path)
    with pytest.raises(UsageError, match="whole environment"):
        slim(site / "torch", drop=make_drop_request("unused", (), None))


def test_a_tree_has_one_run_at_a_time(tmp_path: Path) -> None:
    environment(tmp_path)
    with locked(tmp_path), pytest.raises(StorageError, match="another run"):
        slim(tmp_path)


def test_a_missing_tree_and_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        slim(tmp_path / "nowhere")
    (tmp_path / "file").write_bytes(MANY)
    with pytest.raises(UsageError, match="no directory"):
        slim(tmp_path / "file")


def test_stopping_books_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user stops the run after the first library: its books are right, the other is untouched."""
    site = environment(tmp_path)
    proceed = threading.Event()
    confirm = SlimRewriter.confirm

    def slow(self: SlimRewriter, name: str, original: object, written: object) -> None:
        if name.endswith("libblas.so.13"):
            proceed.wait(10)
        confirm(self, name, original, written)  # type: ignore[arg-type]

    def stop(_size: int) -> None:
        proceed.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(SlimRewriter, "confirm", slow)
    with pytest.raises(KeyboardInterrupt):
        slim_tree(tmp_path, EnvironmentOptions(Request(parse_targets(["sm_86"])), jobs=2), stop)
    assert (site / LIBRARY).stat().st_size < len(MANY)
    assert record_faults(site) == []
    assert temporaries(tmp_path) == []
    monkeypatch.undo()
    assert slim(tmp_path).exit_code == ExitCode.DONE
    assert record_faults(site) == []


def test_a_library_that_is_compacted_in_place_gives_its_pages_back(tmp_path: Path) -> None:
    """Bytes behind the last section forbid a cut; zeros stay in the file, and become a hole on the disk."""
    library = tmp_path / "lib.so"
    container = fatbin.container([fatbin.entry("sm_86"), fatbin.entry("sm_90", size=300_000)])
    library.write_bytes(CudaLibrary((container,)).build().data + b"appended" * 1000)
    before = library.stat()
    report = slim(tmp_path)
    after = library.stat()
    assert report.changed == ("lib.so",)
    assert after.st_size == before.st_size
    assert after.st_blocks < before.st_blocks - 100
