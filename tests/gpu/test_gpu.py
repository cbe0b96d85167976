"""The comparison on this machine's GPU; without one, a rehearsal of all but the device.

$WHEELSLIM_TEST_PYTHON names the Python whose PyTorch is compared; by default the one that runs the tests, or
the environment that tests/real/environments.py makes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu.side import child
from real.environments import directory

COMPARE = Path(__file__).with_name("compare.py")


def python_with_torch() -> str:
    """Find PyTorch, or skip."""
    named = os.environ.get("WHEELSLIM_TEST_PYTHON")
    if named:
        return named
    if importlib.util.find_spec("torch"):
        return sys.executable
    made = directory() / "torch" / "bin" / "python"
    if not made.exists():
        pytest.skip("no PyTorch: set WHEELSLIM_TEST_PYTHON, or run tests/real/environments.py torch")
    return str(made)


def run(*options: str) -> None:
    """Run the script; its report is what a failure shows."""
    command = [sys.executable, str(COMPARE), "--python", python_with_torch(), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)


@pytest.mark.gpu
def test_the_gpu_computes_the_same_from_pruned_libraries() -> None:
    run("--embedded")


@pytest.mark.real
@pytest.mark.slow
def test_the_comparison_itself_runs_on_the_cpu() -> None:
    python = python_with_torch()
    if child([python, "-c", "import torch, sys; sys.exit(torch.cuda.is_available())"], {}).returncode:
        pytest.skip("there is a GPU: the comparison can run for real (-m gpu)")
    run("--cpu-rehearsal")


PLANTED = """
import pathlib, sys, torch
left, other, right = (pathlib.Path(name) for name in sys.argv[1:])
exact, spread = torch.arange(9.0), torch.tensor([1.0, 2.0])
def save(side, name, **result): torch.save(result, side / f"{name}.pt")
for side in (left, other, right): save(side, "fine", tensors=[exact, torch.tensor([float("nan")])])
for side in (left, other): save(side, "one_bit", tensors=[exact])
save(right, "one_bit", tensors=[torch.nextafter(exact, exact + 1)])
for side, by in ((left, 0), (other, 1e-4), (right, 2e-4)): save(side, "near", tensors=[spread + by])
for side, by in ((left, 0), (other, 1e-4), (right, 1e-1)): save(side, "far", tensors=[spread + by])
for side in (left, other): save(side, "broken", tensors=[exact])
save(right, "broken", error="RuntimeError: CUDA error: no kernel image")
for side in (left, other, right): save(side, "unsupported", error="RuntimeError: not on this GPU")
for side in (left, other): save(side, "lost", tensors=[exact])
"""


@pytest.mark.real
@pytest.mark.slow
def test_the_comparison_sees_planted_differences(tmp_path: Path) -> None:
    sides = [tmp_path / name for name in ("original", "again", "pruned")]
    for side in sides:
        side.mkdir()
    python = python_with_torch()
    assert child([python, "-c", PLANTED, *map(str, sides)], {}).returncode == 0
    done = child([python, "-m", "gpu.difference", *map(str, sides)], {})
    verdicts = {name: one["verdict"] for name, one in json.loads(done.stdout).items()}
    assert verdicts == {
        "broken": "different",
        "far": "different",
        "fine": "same",
        "lost": "different",
        "near": "close",
        "one_bit": "different",
        "unsupported": "not run",
    }
