"""Slimmed conda packages under conda's own tools: py-rattler installs them, cph and tar unpack them."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from builders.conda_tree import PLACEHOLDER, add_info, listing, sha256
from integration import conda_pruning
from integration.pruning import check_library
from judges import conda_client
from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.conda_rewrite import CondaOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.loader import Loader

KINDS = [".conda", ".tar.bz2"]
SITE = "lib/python3.11/site-packages"
TARGET, DEVICES = "sm_86", [86]
MODE = 0o755
LIBRARIES = {"lib/libmany.so.1.2", "lib/libprefix.so", f"{SITE}/demo/_C.so"}


@pytest.fixture
def tree(corpus: Callable[[str], Path], tmp_path: Path) -> Path:
    """An unpacked package of real libraries, with each kind of link and both kinds of placeholder."""
    tree = tmp_path / "tree"
    (tree / "lib").mkdir(parents=True)
    (tree / SITE / "demo").mkdir(parents=True)
    (tree / "bin").mkdir()
    (tree / "share").mkdir()
    write(tree / "lib/libmany.so.1.2", corpus("many_containers").read_bytes())
    write(tree / f"{SITE}/demo/_C.so", corpus("rdc").read_bytes())
    write(tree / "lib/libprefix.so", corpus("many_archs").read_bytes() + prefix_string())
    write(tree / "bin/run", f"#!{PLACEHOLDER}/bin/sh\nexit 0\n".encode())
    write(tree / "share/binary.dat", b"\x00\x01" + prefix_string() + b"\xff")
    write(tree / "share/größe.txt", b"name\n")
    write(tree / ("share/" + "deep-" * 30 + "/" + "long-" * 40 + ".txt"), b"long\n")
    (tree / "lib/libmany.so").symlink_to("libmany.so.1.2")
    (tree / "lib64").symlink_to("lib")
    (tree / "share/through").symlink_to("../lib/libmany.so")
    (tree / "share/dangling").symlink_to("not-there")
    os.link(tree / "lib/libmany.so.1.2", tree / "lib/libzz_hard.so")
    add_info(
        tree,
        "demo",
        placeholders={"bin/run": "text", "share/binary.dat": "binary", "lib/libprefix.so": "binary"},
    )
    return tree


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    path.chmod(MODE)


def prefix_string() -> bytes:
    return f"{PLACEHOLDER}/share\0after\0".encode()


def installed_string(prefix: Path) -> bytes:
    """What a client makes of ``prefix_string``: its own prefix, and zeros up to the old length."""
    text = f"{prefix}/share".encode()
    return text.ljust(len(f"{PLACEHOLDER}/share"), b"\0") + b"\0after\0"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target_kind", [ArtifactKind.CONDA, ArtifactKind.TAR_BZ2])
def test_a_client_installs_what_paths_json_says(
    tree: Path, tmp_path: Path, loader: Loader, kind: str, target_kind: ArtifactKind
) -> None:
    package = conda_client.cph_create(tree, tmp_path / f"demo-1.0-h0_0{kind}")
    options = replace(conda_pruning.QUICK, format=target_kind, build_suffix="sm86")
    slim, result = conda_pruning.prune(package, tmp_path / "slim", TARGET, options)
    # For .tar.bz2 cph orders by a hash: either name of the two may come first and be the file.
    assert {change.name.replace("zz_hard.so", "many.so.1.2") for change in result.changed} == LIBRARIES
    assert result.notices == ()

    prefix = conda_client.rattler_install([slim], ["demo ==1.0 h0_0_sm86"], tmp_path / "client")
    record = json.loads((prefix / "conda-meta/demo-1.0-h0_0_sm86.json").read_text())
    assert record["build"] == "h0_0_sm86"
    unpacked = conda_client.cph_extract(slim, tmp_path / "unpacked")
    entries = json.loads((unpacked / "info/paths.json").read_text())["paths"]
    for entry in entries:
        path = prefix / entry["_path"]
        if entry["path_type"] == "softlink":
            assert str(path.readlink()) == str((tree / entry["_path"]).readlink())
        elif "prefix_placeholder" not in entry:
            assert sha256(path) == entry["sha256"]
            assert path.stat().st_size == entry["size_in_bytes"]
            assert path.stat().st_mode & 0o777 == MODE
    assert {entry["_path"] for entry in entries} == {
        name for name, (kind_, _, _) in listing(tree).items() if kind_ != "directory" and name[:5] != "info/"
    }
    assert os.path.samefile(prefix / "lib/libzz_hard.so", prefix / "lib/libmany.so.1.2")  # noqa: PTH121
    assert (prefix / "lib64/libmany.so").resolve() == prefix / "lib/libmany.so.1.2"

    assert (prefix / "bin/run").read_text() == f"#!{prefix}/bin/sh\nexit 0\n"
    assert (prefix / "share/binary.dat").read_bytes() == b"\x00\x01" + installed_string(prefix) + b"\xff"
    for name in sorted(LIBRARIES):
        check_library(tree / name, prefix / name, DEVICES, loader)
    assert (prefix / "lib/libmany.so.1.2").stat().st_size < (tree / "lib/libmany.so.1.2").stat().st_size
    assert installed_string(prefix) in (prefix / "lib/libprefix.so").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_all_tools_unpack_the_same_tree(tree: Path, tmp_path: Path, kind: str) -> None:
    package = conda_client.cph_create(tree, tmp_path / f"demo-1.0-h0_0{kind}")
    slim, _ = conda_pruning.prune(package, tmp_path / "slim", TARGET)
    by_cph = conda_client.cph_extract(slim, tmp_path / "cph")
    by_tar = conda_client.tar_extract(slim, tmp_path / "tar")
    by_rattler = conda_client.rattler_extract(slim, tmp_path / "rattler")
    found = listing(by_cph)
    assert found == listing(by_tar) == listing(by_rattler)
    assert found.keys() == listing(tree).keys() | {"info/wheelslim.json"}
    for unpacked in (by_cph, by_tar, by_rattler):
        inodes = {(unpacked / f"lib/{name}").stat().st_ino for name in ("libzz_hard.so", "libmany.so.1.2")}
        assert len(inodes) == 1


@pytest.mark.parametrize(("kind", "other"), [KINDS, KINDS[::-1]])
def test_cph_transmutes_the_result_and_finds_no_difference(
    tree: Path, tmp_path: Path, kind: str, other: str
) -> None:
    package = conda_client.cph_create(tree, tmp_path / f"demo-1.0-h0_0{kind}")
    slim, _ = conda_pruning.prune(package, tmp_path / "slim", TARGET)
    converted = tmp_path / "converted"
    converted.mkdir()
    conda_client.cph("transmute", slim, other, "--out-folder", converted)
    assert conda_client.cph_differences(converted / f"demo-1.0-h0_0{other}", slim) == ([], [])


@pytest.mark.parametrize(("kind", "other"), [KINDS, KINDS[::-1]])
def test_a_conversion_of_ours_is_what_cph_would_write(
    tree: Path, tmp_path: Path, kind: str, other: str
) -> None:
    kinds = {".conda": ArtifactKind.CONDA, ".tar.bz2": ArtifactKind.TAR_BZ2}
    options = CondaOptions(compression_level=3, format=kinds[other])
    # Nothing to prune: only the format changes.
    for name in sorted(LIBRARIES):
        (tree / name).write_bytes(b"host only")
    shutil.rmtree(tree / "info")
    add_info(tree, "demo")
    package = conda_client.cph_create(tree, tmp_path / f"demo-1.0-h0_0{kind}")
    ours, _ = conda_pruning.prune(package, tmp_path / "slim", TARGET, options)
    assert conda_client.cph_differences(ours, package) == ([], [])


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_was_pruned_differs_from_the_original(tree: Path, tmp_path: Path, kind: str) -> None:
    package = conda_client.cph_create(tree, tmp_path / f"demo-1.0-h0_0{kind}")
    slim, result = conda_pruning.prune(package, tmp_path / "slim", TARGET)
    only, different = conda_client.cph_differences(slim, package)
    assert only == ["info/wheelslim.json"]
    assert set(different) == {"info/paths.json", *(change.name for change in result.changed)}


def test_the_channel_recipes_of_the_manual_choose_the_slimmed_package(tree: Path, tmp_path: Path) -> None:
    package = conda_client.cph_create(tree, tmp_path / "demo-1.0-h0_0.conda")
    options = replace(conda_pruning.QUICK, build_suffix="sm86")
    slim, _ = conda_pruning.prune(package, tmp_path / "slim", TARGET, options)
    upstream = conda_client.channel_of([package], tmp_path / "upstream")
    own = conda_client.channel_of([slim], tmp_path / "own")
    both = conda_client.channel_of([package, slim], tmp_path / "both")
    assert conda_client.rattler_solve([own, upstream], "demo") == [slim.name]
    assert conda_client.rattler_solve([both], "demo * *_sm86") == [slim.name]
    assert conda_client.rattler_solve([both], "demo") == [package.name]
