"""Inspections of real libraries against NVIDIA's cuobjdump: entries by architecture."""

from __future__ import annotations

import zipfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from wheelslim.inspection import inspect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump

pytestmark = pytest.mark.real

LIBRARIES = [
    pytest.param("torchvision", "torchvision/_C_stable.so", id="ptx"),
    pytest.param("torchvision", "torchvision.libs/libnvjpeg", id="unreferenced"),
    pytest.param("bitsandbytes", "libbitsandbytes_cuda130.so", id="rdc"),
    pytest.param("nccl", "libnccl.so.2", id="rdc-large", marks=pytest.mark.slow),
    pytest.param("torch", "libtorch_cuda.so", id="suffixes", marks=pytest.mark.slow),
    pytest.param("cupy-cuda13x", "cupy/cuda/thrust", id="many-architectures"),
]


@pytest.mark.parametrize(("key", "part"), LIBRARIES)
def test_entries_are_those_that_cuobjdump_lists(
    key: str, part: str, real_wheel: Callable[[str], Path], cuobjdump: Cuobjdump, tmp_path: Path
) -> None:
    with zipfile.ZipFile(real_wheel(key)) as archive:
        name = next(name for name in archive.namelist() if part in name and ".so" in name)
        archive.extract(name, tmp_path)
    path = tmp_path / name
    counted: Counter[str] = Counter()
    for label, share in inspect(path).architectures.items():
        counted[label.removesuffix("f")] += share.entries  # cuobjdump does not show the f
    listed: Counter[str] = Counter()
    for label, count in cuobjdump.listing(path).items():
        listed[label.removesuffix("f")] += count
    assert counted == listed
    path.unlink()
