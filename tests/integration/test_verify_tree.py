"""``verify`` on an environment that ``env`` slimmed: the books of pip and conda, and faults in them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from builders.environment_trees import environment
from builders.installed import conda_record
from real.pruned import wheelslim
from wheelslim.proof.promise import Promise
from wheelslim.verification import Verification, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelslim.errors import VerifyError


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """An environment with books of both kinds, and its slimmed copy."""
    original, slimmed = tmp_path / "original", tmp_path / "slimmed"
    original.mkdir()
    environment(original)
    listed = [str(path.relative_to(original)) for path in sorted(original.rglob("*")) if path.is_file()]
    conda_record(original, "everything", [path for path in listed if not path.startswith("conda-meta")])
    shutil.copytree(original, slimmed, symlinks=True)
    run = wheelslim(tmp_path, "env", "-a", "sm_86", str(slimmed))
    assert run.exit_code == 0, run.stderr
    return original, slimmed


def failures(result: Verification) -> dict[Promise, VerifyError]:
    return {finding.promise: finding.failure for finding in result.findings if finding.failure is not None}


def test_a_slimmed_environment_holds(trees: tuple[Path, Path]) -> None:
    result = verify(*trees)
    assert result.holds, str(result.failure)
    assert result.targets == ("sm_86",)
    found = {finding.promise: finding.what for finding in result.findings}
    assert "in 2 changed libraries" in found[Promise.DEVICE_CODE]
    assert "paths of conda: true" in found[Promise.BOOKS]


def wrong_hash(record: dict[str, object]) -> None:
    entry = entries(record)[0]
    entry["sha256_in_prefix"] = entry["sha256"] = "0" * 64


def wrong_size(record: dict[str, object]) -> None:
    entries(record)[0]["size_in_bytes"] = 1


def one_less(record: dict[str, object]) -> None:
    entries(record).pop(1)


def one_file_less(record: dict[str, object]) -> None:
    assert isinstance(record["files"], list)
    record["files"].pop(0)


def another_name(record: dict[str, object]) -> None:
    record["name"] = "other"


def another_type(record: dict[str, object]) -> None:
    entries(record)[0]["path_type"] = "directory"


def entries(record: dict[str, object]) -> list[dict[str, object]]:
    data = record["paths_data"]
    assert isinstance(data, dict)
    paths = data["paths"]
    assert isinstance(paths, list)
    return paths


@pytest.mark.parametrize(
    "edit", [wrong_hash, wrong_size, one_less, one_file_less, another_name, another_type]
)
def test_a_record_of_conda_that_lies(
    trees: tuple[Path, Path], edit: Callable[[dict[str, object]], None]
) -> None:
    (place,) = (trees[1] / "conda-meta").glob("everything*.json")
    record = json.loads(place.read_text())
    edit(record)
    place.write_text(json.dumps(record))
    found = failures(verify(*trees))
    assert set(found) == {Promise.BOOKS}
    assert found[Promise.BOOKS].place.member == f"conda-meta/{place.name}"


def test_a_row_of_record_that_lies(trees: tuple[Path, Path]) -> None:
    place = next(trees[1].rglob("torch-1.0.dist-info/RECORD"))
    text = place.read_text()
    at = text.index("sha256=") + 12
    place.write_text(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :])
    assert failures(verify(*trees))[Promise.BOOKS].place.member == str(place.relative_to(trees[1]))
