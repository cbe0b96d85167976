"""pip, uv and wheel: do the ordinary tools take the artifact?"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

import pytest

from judges.programs import must, program

if TYPE_CHECKING:
    from pathlib import Path


def pip_install(wheel: Path, target: Path) -> Path:
    """Install without dependencies into the directory ``target``."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed")
    quiet = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", "--quiet"]
    must([sys.executable, "-m", "pip", "install", *quiet, "--target", str(target), str(wheel)])
    return target


def uv_install(wheel: Path, target: Path) -> Path:
    """Do the same with uv."""
    quiet = ["--no-deps", "--no-index", "--offline", "--no-config", "--quiet"]
    must(
        [
            program("uv"),
            "pip",
            "install",
            *quiet,
            "--python",
            sys.executable,
            "--target",
            str(target),
            str(wheel),
        ]
    )
    return target


def wheel_unpack(wheel: Path, target: Path) -> Path:
    """Unpack with ``wheel unpack``, which checks every hash of RECORD; returns the unpacked tree."""
    must([sys.executable, "-m", "wheel", "unpack", "--dest", str(target), str(wheel)])
    return next(target.iterdir())


def unzip_test(archive: Path) -> None:
    """Let Info-ZIP read every member: ``unzip -t``."""
    must([program("unzip"), "-tqq", str(archive)])
