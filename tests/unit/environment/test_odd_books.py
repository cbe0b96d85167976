"""Books that are no regular files, or that say nothing which can be kept true."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from builders.environment_trees import MANY, PLAIN, environment, slim
from builders.installed import record_faults
from wheelslim.errors import ExitCode

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
