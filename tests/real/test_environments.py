"""Real wheels slimmed after they were unpacked: the same libraries as in the wheel that ``prune`` writes."""

from __future__ import annotations

import json
import os
import zipfile
from typing import TYPE_CHECKING

import pytest

from builders.environment_trees import facts, temporaries
from builders.installed import record_faults
from real.pruned import wheelslim

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.real


def unpacked(wheel: Path, target: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


@pytest.mark.parametrize(
    ("key", "devices"), [("torchvision", "sm_86"), ("bitsandbytes", "sm_90"), ("cupy-cuda13x", "sm_80,sm_90")]
)
def test_env_and_prune_make_the_same_libraries(
    real_wheel: Callable[[str], Path], tmp_path: Path, key: str, devices: str
) -> None:
    wheel = real_wheel(key)
    assert wheelslim(tmp_path, "prune", "-a", devices, "-o", str(tmp_path / "out"), str(wheel)).exit_code == 0
    (slimmed,) = (tmp_path / "out").glob("*.whl")
    expected = unpacked(slimmed, tmp_path / "expected")
    tree = unpacked(wheel, tmp_path / "tree")
    kept = tmp_path / "cache"
    for library in tree.rglob("*.so*"):
        kept.mkdir(exist_ok=True)
        os.link(library, kept / f"{library.stat().st_ino}")
    shared = facts(kept)
    done = wheelslim(tmp_path, "env", "-a", devices, "--json", str(tree))
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["changed"]
    for name in report["changed"]:
        assert (tree / name).read_bytes() == (expected / name).read_bytes()
    skipped = [
        library["path"] for library in report["tree"]["libraries"] if library["path"] not in report["changed"]
    ]
    # What env leaves alone would not have become a page smaller.
    for name in skipped:
        assert (tree / name).stat().st_size - (expected / name).stat().st_size < 4096
    assert record_faults(tree) == []
    assert facts(kept) == shared
    assert temporaries(tree) == []
    before = facts(tree)
    assert json.loads(wheelslim(tmp_path, "env", "-a", devices, "--json", str(tree)).stdout)["changed"] == []
    assert facts(tree) == before
