"""Environments to import the pruned wheels in: ``python tests/real/environments.py [NAME…]``.

They lie beside the cache of wheels, in ``~/.cache/wheelslim/envs`` by default. ``small`` takes seconds; the
two of PyTorch take 5.5 and 4.5 GB. Tests work on copies made of hard links.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENTS = {
    "small": ("numpy", "scipy", "cuda-pathfinder"),
    "torch": ("torch==2.14.1", "torchvision==0.29.1", "numpy"),
    "torch-2.1": ("torch==2.1.2", "numpy<2"),
}


def directory() -> Path:
    """Where the environments lie."""
    cache = Path(os.environ.get("WHEELSLIM_TEST_CACHE", "~/.cache/wheelslim/wheels")).expanduser()
    return cache.parent / "envs"


def make(name: str) -> Path:
    """Make an environment unless it is there."""
    target, part = directory() / name, directory() / f"{name}.part"
    if not target.exists():
        venv.create(part, symlinks=True, with_pip=True, clear=True)
        command = [str(part / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
        subprocess.run([*command, *ENVIRONMENTS[name]], check=True)
        part.rename(target)
    return target


@contextmanager
def copied(name: str) -> Iterator[Path]:
    """Yield a copy whose files are hard links; installers replace files, they do not write into them."""
    copy = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=directory()))
    try:
        shutil.copytree(directory() / name, copy, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
        yield copy
    finally:
        shutil.rmtree(copy)


def main() -> None:
    """Make what the command line names."""
    for name in sys.argv[1:]:
        print(make(name))
    if not sys.argv[1:]:
        for name, packages in ENVIRONMENTS.items():
            state = "there" if (directory() / name).exists() else ""
            print(f"{name:12}{state:8}{' '.join(packages)}")


if __name__ == "__main__":
    main()
