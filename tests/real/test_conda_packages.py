"""Contents of real wheels as conda packages: packed by cph, slimmed, and installed by py-rattler."""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from builders.conda_tree import PLACEHOLDER, add_info, listing, sha256
from builders.wheel import record_hash
from integration import conda_pruning
from judges import conda_client, readelf
from judges.programs import must
from real.pruned import prune

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wheelslim.rewriter import RewriteResult

pytestmark = pytest.mark.real

SITE = "lib/python3.11/site-packages"
ARCH = "sm_86"
KEYS = ["torchvision", "cupy-cuda13x", pytest.param("nccl", marks=pytest.mark.slow)]


@dataclass(frozen=True)
class Packaged:
    """A wheel's content as a tree, as a package, slimmed, and installed."""

    key: str
    wheel: Path
    tree: Path
    package: Path
    slim: Path
    result: RewriteResult
    prefix: Path
    scratch: Path

    @property
    def library(self) -> str:
        """The file with two more links to it."""
        return (self.tree / "share/library").read_text()


@pytest.fixture(scope="module", params=KEYS)
def packaged(
    request: pytest.FixtureRequest,
    real_wheel: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Packaged]:
    key = request.param
    wheel = real_wheel(key)
    scratch = tmp_path_factory.mktemp(f"conda-{key}")
    tree = scratch / "tree"
    lay_out(wheel, tree)
    add_info(tree, key, placeholders={"bin/run": "text", "share/binary.dat": "binary"})
    api = pytest.importorskip("conda_package_handling.api")
    name = f"{key}-1.0-h0_0.conda"
    # A quick level: cph's own 19 takes a minute per 200 MB.
    api.create(str(tree), None, name, str(scratch), compression_level=3, compression_threads=2)
    slim, result = conda_pruning.prune(scratch / name, scratch / "slim", ARCH)
    prefix = conda_client.rattler_install([slim], [key], scratch / "client")
    yield Packaged(key, wheel, tree, scratch / name, slim, result, prefix, scratch)
    shutil.rmtree(scratch)


def lay_out(wheel: Path, tree: Path) -> None:
    """Unpack a wheel into site-packages, and give its largest library two links."""
    site = tree / SITE
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        largest = max(archive.infolist(), key=lambda info: info.file_size).filename
    library = site / largest
    library.chmod(0o755)
    (tree / "lib/link.so").symlink_to(library.relative_to(tree / "lib"))
    (tree / "lib/to_packages").symlink_to("python3.11/site-packages")
    os.link(library, tree / "lib/hard.so")
    (tree / "bin").mkdir()
    (tree / "share").mkdir()
    (tree / "bin/run").write_text(f"#!{PLACEHOLDER}/bin/python\n")
    (tree / "share/binary.dat").write_bytes(b"\0" + PLACEHOLDER.encode() + b"/x\0\xff")
    (tree / "share/library").write_text(f"{SITE}/{largest}")


def test_every_installed_file_is_what_paths_json_says(packaged: Packaged) -> None:
    unpacked = conda_client.cph_extract(packaged.slim, packaged.scratch / "by-cph")
    entries = json.loads((unpacked / "info/paths.json").read_text())["paths"]
    for entry in entries:
        path = packaged.prefix / entry["_path"]
        if entry["path_type"] == "softlink":
            assert path.readlink() == (packaged.tree / entry["_path"]).readlink()
        elif "prefix_placeholder" not in entry:
            assert (sha256(path), path.stat().st_size) == (entry["sha256"], entry["size_in_bytes"])
    assert os.path.samefile(packaged.prefix / "lib/hard.so", packaged.prefix / packaged.library)  # noqa: PTH121
    assert (packaged.prefix / "bin/run").read_text() == f"#!{packaged.prefix}/bin/python\n"
    by_tar = conda_client.tar_extract(packaged.slim, packaged.scratch / "by-tar")
    assert listing(unpacked) == listing(by_tar)


def test_only_libraries_and_lists_differ_from_the_original(packaged: Packaged) -> None:
    only, different = conda_client.cph_differences(packaged.slim, packaged.package)
    assert only == ["info/wheelslim.json"]
    records = {f"{SITE}/{path.parent.name}/RECORD" for path in (packaged.tree / SITE).glob("*/RECORD")}
    assert set(different) == {
        "info/paths.json",
        *records,
        *(change.name for change in packaged.result.changed),
    }
    assert packaged.result.notices == ()


def test_record_is_true_for_the_slimmed_libraries(packaged: Packaged) -> None:
    (distribution,) = metadata.distributions(path=[str(packaged.prefix / SITE)])
    rows = {packaged.prefix / SITE / row: row for row in distribution.files or ()}
    for change in packaged.result.changed:
        name = packaged.library if change.name == "lib/hard.so" else change.name
        row = rows[packaged.prefix / name]
        data = (packaged.prefix / name).read_bytes()
        assert row.size == len(data)
        assert f"sha256={row.hash.value if row.hash else ''}" == record_hash(data)


def test_the_libraries_are_those_of_the_pruned_wheel(packaged: Packaged) -> None:
    scratch = packaged.scratch / "as-wheel"
    scratch.mkdir()
    pruned = prune(packaged.key, ARCH, packaged.wheel, scratch)
    assert pruned.changed
    with zipfile.ZipFile(pruned.wheel) as archive:
        for name in pruned.changed:
            assert archive.read(name) == (packaged.prefix / SITE / name).read_bytes()
    names = {
        packaged.library if change.name == "lib/hard.so" else change.name
        for change in packaged.result.changed
    }
    assert names == {f"{SITE}/{name}" for name in pruned.changed}


def test_the_libraries_are_sound_and_load(packaged: Packaged) -> None:
    for change in packaged.result.changed:
        readelf.sound(packaged.prefix / change.name, packaged.tree / change.name)
    if packaged.key == "nccl":  # The only one that needs nothing beside the C library.
        code = "import ctypes, sys; v = ctypes.c_int(); l = ctypes.CDLL(sys.argv[1]); "
        code += "assert l.ncclGetVersion(ctypes.byref(v)) == 0; print(v.value)"
        before, after = (
            must([sys.executable, "-c", code, str(root / packaged.library)])
            for root in (packaged.tree, packaged.prefix)
        )
        assert after == before
