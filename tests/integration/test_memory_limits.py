"""Too little memory: one message, exit code 5, and no litter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.environment_trees import environment, temporaries
from builders.installed import record_faults
from builders.wheel import Member, Wheel

if TYPE_CHECKING:
    from collections.abc import Callable

resource = pytest.importorskip("resource")
SOURCE = str(Path(__file__).parents[2] / "src")
DONE, IO = 0, 5
LIMITS = (48, 72, 96, 128, 160, 200, 260, 340)
"""MiB of address space. The interpreter starts with some 25; each thread wants some 70 more at first."""


def limited(size: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run wheelslim in ``size`` MiB of address space."""
    return subprocess.run(
        [sys.executable, "-m", "wheelslim", *words],
        env={**os.environ, "PYTHONPATH": SOURCE},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size << 20, size << 20)),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_prune_ends_in_order_with_little_memory(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    library = Member(corpus("many_archs").read_bytes(), 0o755)
    wheel = Wheel({f"demo/lib{n}.so": library for n in range(4)}, name="demo").write(tmp_path)
    codes = []
    for size in LIMITS:
        out = tmp_path / f"out-{size}"
        result = limited(size, "prune", "-q", "-a", "sm_86", "-o", str(out), str(wheel))
        codes.append(result.returncode)
        assert result.returncode in (DONE, IO), result.stderr
        left = list(out.iterdir()) if out.exists() else []
        assert len(left) == (result.returncode == DONE)
        if result.returncode == IO:
            assert result.stderr.startswith("wheelslim: ")
            assert len(result.stderr.splitlines()) == 1
    assert IO in codes


def test_env_ends_in_order_with_little_memory(tmp_path: Path) -> None:
    codes = []
    for size in LIMITS:
        root = tmp_path / str(size)
        environment(root)
        result = limited(size, "env", "-q", "-a", "sm_86", str(root))
        codes.append(result.returncode)
        assert result.returncode in (DONE, IO), result.stderr
        assert "Traceback" not in result.stderr
        assert [path for path in temporaries(root) if path.suffix == ".tmp"] == []
        assert limited(4096, "env", "-q", "-a", "sm_86", str(root)).returncode == DONE
        assert temporaries(root) == []
        assert record_faults(root / "lib/python3.11/site-packages") == []
    assert IO in codes
