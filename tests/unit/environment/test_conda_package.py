"""Records of conda packages after their libraries were slimmed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from builders.environment_trees import MANY, facts, slim
from builders.installed import conda_faults, conda_record, install, record_faults

if TYPE_CHECKING:
    from pathlib import Path


def entry(place: Path, path: str) -> dict[str, Any]:
    document = json.loads(place.read_text())
    (found,) = [one for one in document["paths_data"]["paths"] if one["_path"] == path]
    assert isinstance(found, dict)
    return found


def prefix(root: Path) -> Path:
    """A prefix with one library package; returns its record."""
    (root / "lib").mkdir(parents=True)
    (root / "lib/libcublas.so.13").write_bytes(MANY)
    (root / "lib/libcublas.so").symlink_to("libcublas.so.13")
    (root / "lib/other.txt").write_text("other")
    return conda_record(root, "libcublas", ["lib/libcublas.so", "lib/libcublas.so.13", "lib/other.txt"])


def test_hashes_and_sizes_follow_the_file_and_the_links_to_it(tmp_path: Path) -> None:
    place = prefix(tmp_path)
    old = json.loads(place.read_text())
    report = slim(tmp_path)
    assert report.packages == ("libcublas-1.0-0",)
    assert conda_faults(tmp_path) == []
    new = json.loads(place.read_text())
    size = (tmp_path / "lib/libcublas.so.13").stat().st_size
    assert entry(place, "lib/libcublas.so.13")["size_in_bytes"] == size
    assert entry(place, "lib/libcublas.so.13")["sha256"] == entry(place, "lib/libcublas.so")["sha256"]
    assert entry(place, "lib/other.txt") in old["paths_data"]["paths"]
    for key in ("sha256", "md5", "size", "files", "name"):
        assert new[key] == old[key]


def test_a_file_with_the_prefix_in_it_keeps_the_hash_of_the_packed_one(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libp.so").write_bytes(MANY)
    more = {"lib/libp.so": {"sha256": "a" * 64, "prefix_placeholder": "/build", "file_mode": "binary"}}
    place = conda_record(tmp_path, "placed", ["lib/libp.so"], **more)
    slim(tmp_path)
    assert entry(place, "lib/libp.so")["sha256"] == "a" * 64
    assert conda_faults(tmp_path) == []


def test_a_python_package_of_conda_has_both_books(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.11/site-packages"
    install(site, "torch", {"torch/lib/libmany.so": MANY})
    paths = [path.relative_to(tmp_path).as_posix() for path in sorted(site.rglob("*")) if path.is_file()]
    place = conda_record(tmp_path, "pytorch", paths)
    report = slim(tmp_path)
    assert report.packages == ("pytorch-1.0-0", "torch-1.0")
    assert record_faults(site) == []
    assert conda_faults(tmp_path) == []
    stamp = "lib/python3.11/site-packages/torch-1.0.dist-info/wheelslim.json"
    assert stamp in json.loads(place.read_text())["files"]
    assert entry(place, stamp)["path_type"] == "hardlink"
    before = facts(tmp_path)
    slim(tmp_path)
    assert facts(tmp_path) == before


def test_the_document_keeps_its_style(tmp_path: Path) -> None:
    place = prefix(tmp_path)
    slim(tmp_path)
    text = place.read_text()
    assert text == json.dumps(json.loads(text), indent=2)
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_packages_of_conda_can_be_chosen(tmp_path: Path) -> None:
    prefix(tmp_path)
    (tmp_path / "lib/unowned.so").write_bytes(MANY)
    assert slim(tmp_path, packages=("libcublas",)).changed == ("lib/libcublas.so.13",)


def test_a_record_that_does_not_parse_keeps_what_it_may_own(tmp_path: Path) -> None:
    place = prefix(tmp_path)
    place.write_text("{")
    report = slim(tmp_path)
    assert report.changed == ()
    assert (tmp_path / "lib/libcublas.so.13").read_bytes() == MANY
    assert "does not parse" in report.passed_over[0].reason
