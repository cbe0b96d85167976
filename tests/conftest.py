"""Fixtures that stand on things outside the repository: judges, compilers, real wheels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corpus.recipes import BY_NAME
from judges import cuobjdump as cuobjdump_judge
from judges.loader import Loader

if TYPE_CHECKING:
    from collections.abc import Callable

    from judges.cuobjdump import Cuobjdump

CACHE = Path(os.environ.get("WHEELSLIM_TEST_CACHE", "~/.cache/wheelslim/wheels")).expanduser()


@pytest.fixture(scope="session")
def corpus() -> Callable[[str], Path]:
    """Path of a library of the corpus: ``corpus("many_archs")``."""
    return lambda name: BY_NAME[name].path


@pytest.fixture(scope="session")
def real_wheel() -> Callable[[str], Path]:
    """Path of a fetched wheel: ``real_wheel("torchvision")``, a key of tests/real/fetch.py; or skips."""
    from real.fetch import find

    def cached(key: str) -> Path:
        wheel = find(key, CACHE)
        if wheel is None:
            pytest.skip(f"{key} is not in {CACHE}: python tests/real/fetch.py {key}")
        return wheel

    return cached


@pytest.fixture(scope="session")
def cuobjdump() -> Cuobjdump:
    """NVIDIA's cuobjdump; skips without it."""
    found = cuobjdump_judge.find(CACHE)
    if found is None:
        pytest.skip(f"cuobjdump is neither in {CACHE} nor on the PATH: python tests/real/fetch.py cuobjdump")
    return found


@pytest.fixture(scope="session")
def older_cuobjdump() -> Cuobjdump | None:
    """That of CUDA 12.4, where it has been fetched: ``python tests/real/fetch.py cuobjdump-12``."""
    return cuobjdump_judge.find_older(CACHE)


@pytest.fixture(scope="session")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    """Loads x86-64 libraries with a spy in the place of the CUDA runtime."""
    return Loader.make("x86_64", tmp_path_factory.mktemp("loader_x86_64"))


@pytest.fixture(scope="session")
def loader_aarch64(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    """Does so for AArch64, under qemu-user on another machine."""
    return Loader.make("aarch64", tmp_path_factory.mktemp("loader_aarch64"))
