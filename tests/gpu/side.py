"""One installation of PyTorch, original or pruned, and the runs on it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu.prune_copy import Copy

TESTS = Path(__file__).resolve().parents[1]
AGAIN = 75
"""Exit code by which the workload asks to be started again."""

TIMEOUT = 3600


@dataclass
class Side:
    """One installation and the directory of its results."""

    python: str
    rehearsal: bool
    directory: Path
    copy: Copy | None = None

    def results(self, loading: str) -> Path:
        """Where the results of one way of loading lie."""
        return self.directory / loading

    def run(self, loading: str, only: list[str]) -> None:
        """Run operations, starting the child again after each one that kills it."""
        results = self.results(loading)
        results.mkdir(parents=True)
        if not only:
            return
        device = "cpu" if self.rehearsal else "cuda"
        command = [self.python, "-m", "gpu.workload", "--device", device, "--results", str(results)]
        command += ["--small"] if self.rehearsal else []
        command += ["--only", *only]
        path = str(self.copy.root) if self.copy else ""
        for _ in range(100):
            done = child(command, {"PYTHONPATH": path, "CUDA_MODULE_LOADING": loading})
            current = results / "current"
            if done.returncode == 0:
                return
            if done.returncode == AGAIN:
                continue
            if not current.exists():
                raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}")
            self.record_death(results, current.read_text(), done.returncode)
            current.unlink()

    def record_death(self, results: Path, operation: str, code: int) -> None:
        """Write a result for an operation that took the process with it."""
        lines = "import sys, torch; torch.save({'error': sys.argv[2]}, sys.argv[1])"
        error = f"the process died: {code}"
        child([self.python, "-c", lines, str(results / f"{operation}.pt"), error], {})

    def misplaced(self, site: Path) -> list[str]:
        """Faults of the comparison itself: the child did not map the pruned files, or mapped originals."""
        if self.copy is None:
            return []
        about = self.results("LAZY") / "about.json"
        if not about.exists():
            return ["the operations did not come to an end"]
        mapped = json.loads(about.read_text())["mapped"]
        originals = {str(site / name) for name in self.copy.pruned} & set(mapped)
        used = {str(self.copy.root / name) for name in self.copy.pruned} & set(mapped)
        faults = [f"the original was mapped: {name}" for name in sorted(originals)]
        return faults if used else [*faults, "no pruned library was mapped"]


def child(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a child process with the settings that make cuBLAS repeatable."""
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "PYTHONPATH": "", **variables}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=TIMEOUT, cwd=TESTS
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", f"no end within {TIMEOUT} s")
