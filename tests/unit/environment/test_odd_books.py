"""Books that are no regular files, or that say nothing which can be kept true."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from builders.environment_trees import MANY, PLAIN, environment, slim
from builders.installed import conda_record, install, record_faults
from wheelslim.environment.replacement import replace_text
from wheelslim.errors import ExitCode, Place, StorageError
from wheelslim.groups.rules import make_drop_request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIBRARY = "torch/lib/libmany.so"
BLAS = "nvidia/blas/lib/libblas.so.13"


def _symlink(path: Path) -> None:
    target = path.parent / "elsewhere"
    target.write_bytes(path.read_bytes() if path.exists() else b"{}")
    path.unlink(missing_ok=True)
    path.symlink_to(target.name)


def _dangling(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("nowhere")


def _directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


ODD = pytest.mark.parametrize("make_odd", [_symlink, _dangling, _directory, _pipe])


@ODD
def test_an_odd_stamp_keeps_its_package_and_no_other(
    tmp_path: Path, make_odd: Callable[[Path], None]
) -> None:
    site = environment(tmp_path)
    make_odd(site / "torch-1.0.dist-info/wheelslim.json")
    report = slim(tmp_path)
    assert report.exit_code == ExitCode.UNSUPPORTED
    assert (site / LIBRARY).read_bytes() == MANY
    assert (site / BLAS).stat().st_size < len(PLAIN)
    assert record_faults(site) == []
    assert [one.path for one in report.passed_over] == [f"lib/python3.11/site-packages/{LIBRARY}"]
    assert "wheelslim.json" in report.passed_over[0].reason
    assert not (site / "torch-1.0.dist-info/nowhere").exists()


@ODD
def test_libraries_that_an_odd_record_may_list_stay(tmp_path: Path, make_odd: Callable[[Path], None]) -> None:
    site = environment(tmp_path)
    make_odd(site / "torch-1.0.dist-info/RECORD")
    report = slim(tmp_path)
    assert report.exit_code == ExitCode.UNSUPPORTED
    assert (site / LIBRARY).read_bytes() == MANY
    assert (site / BLAS).stat().st_size < len(PLAIN)
    assert "RECORD" in report.passed_over[0].reason
    assert slim(site / "torch").exit_code == ExitCode.UNSUPPORTED
    assert (site / LIBRARY).read_bytes() == MANY


def test_a_metadata_directory_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    site = environment(tmp_path / "env")
    outside = (site / "torch-1.0.dist-info").rename(tmp_path / "torch-1.0.dist-info")
    before = (outside / "RECORD").read_bytes()
    (site / outside.name).symlink_to(outside)
    assert slim(tmp_path / "env").exit_code == ExitCode.UNSUPPORTED
    assert slim(site / "torch").exit_code == ExitCode.UNSUPPORTED
    assert (site / LIBRARY).read_bytes() == MANY
    assert (outside / "RECORD").read_bytes() == before


@ODD
def test_libraries_that_an_odd_conda_record_may_list_stay(
    tmp_path: Path, make_odd: Callable[[Path], None]
) -> None:
    (tmp_path / "lib").mkdir()
    for name in ("one", "two"):
        (tmp_path / f"lib/lib{name}.so").write_bytes(MANY)
    make_odd(conda_record(tmp_path, "one", ["lib/libone.so"]))
    conda_record(tmp_path, "two", ["lib/libtwo.so"])
    report = slim(tmp_path)
    assert report.exit_code == ExitCode.UNSUPPORTED
    assert report.changed == ("lib/libtwo.so",)
    assert "one-1.0-0.json" in report.passed_over[0].reason


@pytest.mark.parametrize(
    "odd",
    [
        {"paths_data": 5},
        {"files": "lib/libone.so"},
        {"files": [5]},
        {"paths_data": {"paths": {}}},
        {"paths_data": {"paths": ["lib/libone.so"]}},
        {"paths_data": {"paths": [{"_path": 5}]}},
    ],
)
def test_a_conda_record_of_odd_shape_keeps_what_it_may_list(tmp_path: Path, odd: dict[str, object]) -> None:
    site = tmp_path / "lib/python3.11/site-packages"
    install(site, "torch", {LIBRARY: MANY})
    paths = [path.relative_to(tmp_path).as_posix() for path in sorted(site.rglob("*")) if path.is_file()]
    place = conda_record(tmp_path, "pytorch", paths)
    place.write_text(json.dumps(json.loads(place.read_text()) | odd))
    before = place.read_bytes()
    report = slim(tmp_path)
    assert report.exit_code == ExitCode.UNSUPPORTED
    assert report.changed == ()
    assert place.read_bytes() == before
    assert "no record of a package" in report.passed_over[0].reason


def test_a_conda_record_without_a_list_of_files_owns_its_paths(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libone.so").write_bytes(MANY)
    place = conda_record(tmp_path, "one", ["lib/libone.so"])
    document = json.loads(place.read_text())
    del document["files"]
    place.write_text(json.dumps(document))
    assert slim(tmp_path).packages == ("one-1.0-0",)
    new = json.loads(place.read_text())
    assert "files" not in new
    assert new["paths_data"]["paths"][0]["size_in_bytes"] == (tmp_path / "lib/libone.so").stat().st_size


def test_files_whose_record_cannot_be_written_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    for name in ("one", "two"):
        install(site, name, {f"{name}/lib.so": MANY, f"{name}/include/a.h": b"//"})
    drop = make_drop_request("", ("*/include/**",), None)

    def refuse(path: Path, data: bytes, like: Path | None = None) -> None:
        if path == site / "one-1.0.dist-info/RECORD":
            raise StorageError("operation not permitted", place=Place(artifact=str(path)))
        replace_text(path, data, like)

    with monkeypatch.context() as patched:
        patched.setattr("wheelslim.environment.distribution.replace_text", refuse)
        report = slim(tmp_path, drop=drop)
    assert report.exit_code == ExitCode.IO
    assert "site-packages/one/include/a.h" in [one.path for one in report.passed_over]
    assert report.prune.dropped == ("site-packages/two/include/a.h",)
    assert (site / "one/include/a.h").exists()
    assert not (site / "two/include").exists()
    healed = slim(tmp_path, drop=drop)
    assert healed.exit_code == ExitCode.DONE
    assert healed.prune.dropped == ("site-packages/one/include/a.h",)
    assert not (site / "one/include").exists()
    assert record_faults(site) == []
