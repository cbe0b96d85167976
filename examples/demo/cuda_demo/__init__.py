"""A small CUDA library behind ctypes: what a real CUDA wheel looks like, in miniature."""

from __future__ import annotations

import ctypes
from pathlib import Path

LIBRARY = Path(__file__).parent / "lib" / "libcuda_demo.so"


def load() -> ctypes.CDLL:
    """Load the library. It needs the CUDA 13 runtime, ``libcudart.so.13`` (PyPI: nvidia-cuda-runtime)."""
    for folder in Path(__file__).parents[1].glob("nvidia/cu13/lib/libcudart.so.13"):
        ctypes.CDLL(str(folder), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(LIBRARY))
