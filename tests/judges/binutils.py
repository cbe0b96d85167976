"""strip, objcopy and patchelf: the programs that people run on a library afterwards."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from judges.programs import must, program

if TYPE_CHECKING:
    from pathlib import Path


def strip(library: Path, target: Path, *, prefix: str = "") -> Path:
    """Run ``strip --strip-unneeded`` into ``target``; ``prefix`` is that of a cross strip."""
    must([program(f"{prefix}strip"), "--strip-unneeded", "-o", str(target), str(library)])
    return target


def objcopy(library: Path, target: Path, *options: str, prefix: str = "") -> Path:
    """Run ``objcopy`` with options into ``target``."""
    must([program(f"{prefix}objcopy"), *options, str(library), str(target)])
    return target


def patchelf(library: Path, target: Path, *options: str) -> Path:
    """Copy to ``target`` and run patchelf on it, ``--add-rpath`` with a long path by default."""
    shutil.copyfile(library, target)
    must([program("patchelf"), *(options or ("--add-rpath", "/opt/" + "long/" * 60)), str(target)])
    return target
