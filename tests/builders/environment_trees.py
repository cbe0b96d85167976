"""A small environment of made-up distributions around libraries of the corpus, and runs over it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from builders.installed import install
from corpus.recipes import BY_NAME
from wheelslim.environment.story import EnvironmentOptions, slim_tree
from wheelslim.plan import Request
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

    from wheelslim.environment.outcome import EnvironmentReport

MANY = BY_NAME["many_archs"].path.read_bytes()
PLAIN = BY_NAME["plain"].path.read_bytes()
NO_SM_86 = BY_NAME["suffixes"].path.read_bytes()
SMALL_GAIN = BY_NAME["lto"].path.read_bytes()


def environment(root: Path) -> Path:
    """Two distributions with device code, one without; returns site-packages."""
    site = root / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    install(site, "torch", {"torch/__init__.py": b"x = 1\n", "torch/lib/libmany.so": MANY})
    install(
        site, "nvidia-blas", {"nvidia/blas/lib/libblas.so.13": PLAIN, "../../../bin/blas": b"#!/bin/sh\n"}
    )
    install(site, "numpy", {"numpy/__init__.py": b"y = 2\n", "numpy/core.so": b"\x7fELF" + b"\0" * 2000})
    return site


def slim(path: Path, words: str = "sm_86", **options: object) -> EnvironmentReport:
    """Run over ``path`` with two threads."""
    given = {"jobs": 2, **options}
    return slim_tree(path, EnvironmentOptions(Request(parse_targets([words])), **given))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Facts:
    """What a run may not change of a file that it leaves alone."""

    inode: int
    mtime: int
    size: int
    content: bytes


def facts(root: Path) -> dict[str, Facts]:
    """The facts of every file below ``root``."""
    return {
        path.relative_to(root).as_posix(): Facts(
            (status := os.lstat(path)).st_ino, status.st_mtime_ns, status.st_size, path.read_bytes()
        )
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def temporaries(root: Path) -> list[Path]:
    """Files of ours that no finished run may leave."""
    return list(root.rglob(".wheelslim-*"))
