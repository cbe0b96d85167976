"""Finding and running the programs that judge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping


def program(name: str) -> str:
    """Path of a program, or skip the test; those beside the running Python come first."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(
    command: list[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """Run a command in the C locale and keep what it says; ``env`` is added to the environment."""
    environment = {**os.environ, "LC_ALL": "C", **(env or {})}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=cwd, timeout=timeout
    )


def must(
    command: list[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 600
) -> str:
    """Run a command that has to succeed; returns its standard output."""
    done = run(command, env=env, cwd=cwd, timeout=timeout)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
