"""``wheelslim prune`` where little goes: loose fatbins, and results that would be no smaller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from builders import fatbin
from builders.cubin import cubin
from builders.library import CudaLibrary
from builders.wheel import Wheel
from corpus.recipes import PARTS

if TYPE_CHECKING:
    from pathlib import Path


def wheelslim(*words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80"}
    command = [sys.executable, "-m", "wheelslim", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)


def test_a_fatbin_alone_is_pruned_too(tmp_path: Path) -> None:
    path = tmp_path / "add.fatbin"
    path.write_bytes((PARTS / "add.fatbin").read_bytes())
    planned = wheelslim("prune", "-n", "-a", "sm_80", path, "--json")
    done = wheelslim("prune", "-a", "sm_80", path, "-o", tmp_path / "out", "--json")
    assert done.returncode == planned.returncode == 0, done.stderr + planned.stderr
    sizes = [json.loads(one.stdout)["artifacts"][0]["installed_size"] for one in (planned, done)]
    size = (tmp_path / "out" / "add.fatbin").stat().st_size
    assert sizes == [{"before": 31136, "after": size}] * 2
    assert size < 5000
    assert wheelslim("verify", "-a", "sm_80", path, tmp_path / "out" / "add.fatbin").returncode == 0
    never = wheelslim("prune", "-a", "sm_70", path, "-o", tmp_path / "never")
    assert never.returncode == 4
    assert "(found code for sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, compute_120, sm_120)" in never.stderr


def test_a_dry_run_counts_loose_fatbins(tmp_path: Path) -> None:
    wheel = Wheel({"kernels/add.fatbin": (PARTS / "add.fatbin").read_bytes()}).write(tmp_path)
    result = wheelslim("prune", "-n", "-a", "sm_80", wheel, "--json")
    assert result.returncode == 0, result.stderr
    installed = json.loads(result.stdout)["artifacts"][0]["installed_size"]
    assert 25_000 < installed["before"] - installed["after"] < 31_136


def test_a_result_that_would_be_no_smaller_is_not_written(tmp_path: Path) -> None:
    """One small container goes, and wheelslim.json takes more room than it did."""
    gone = fatbin.container([fatbin.Entry(cubin(["k"], sm=90), sm=90)])
    kept = fatbin.container([fatbin.Entry(cubin(["k"], sm=86), sm=86)])
    library = CudaLibrary((kept, gone)).build().data
    wheel = Wheel({"demo/libdemo.so": library}).write(tmp_path)
    result = wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert "the result would be no smaller: no output was written (--force writes one)" in result.stdout
    assert not list((tmp_path / "out").glob("*"))
    forced = wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out", "--force")
    assert "note: the file grew, " in forced.stdout
    assert len(list((tmp_path / "out").glob("*.whl"))) == 1
