"""Import the pruned packages on a machine that needs no GPU, and let their host code work."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judges.loader import Loader
from judges.programs import must
from real.environments import copied, directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from real.pruned import Pruned

_TORCH = """
import torch
a = torch.arange(12.0).reshape(3, 4)
assert (a @ a.T).tolist() == [[14, 38, 62], [38, 126, 214], [62, 214, 366]]
assert torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)).sum() == 36
assert torch.backends.cuda.is_built()
print("torch", torch.__version__, "GPU:", torch.cuda.is_available())
"""

_LIBRARY = """
import ctypes, glob, sysconfig
import torch
(path,) = glob.glob(sysconfig.get_path("platlib") + "/{0}")
library = ctypes.CDLL(path)
{1}
"""

IMPORTS = {
    "torch": ("torch", _TORCH),
    "torch-2.1": ("torch-2.1", _TORCH),
    "torchvision": (
        "torch",
        """
import torch, torchvision
from torchvision import ops
boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
assert ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]), 0.5).tolist() == [0, 2]
print("torchvision", torchvision.__version__)
""",
    ),
    "cupy-cuda13x": (
        "small",
        """
import cupy
from cupy.cuda import cub, thrust
from cupy.random import _generator_api
print("cupy", cupy.__version__, "runtime", cupy.cuda.get_local_runtime_version())
""",
    ),
    "bitsandbytes": (
        "torch",
        _LIBRARY.format("bitsandbytes/libbitsandbytes_cuda130.so", "library.cget_managed_ptr"),
    ),
    "xgboost": (
        "small",
        """
import numpy, xgboost
x = numpy.arange(200.0).reshape(100, 2)
model = xgboost.train({"max_depth": 2}, xgboost.DMatrix(x, label=x[:, 0]), 5)
assert model.predict(xgboost.DMatrix(x)).std() > 1
print("xgboost", xgboost.__version__, xgboost.build_info()["USE_CUDA"])
""",
    ),
    "cublas": (
        "torch",
        _LIBRARY.format(
            "nvidia/cu13/lib/libcublasLt.so.13",
            "get = library.cublasLtGetVersion; get.restype = ctypes.c_size_t; assert get() == 130101",
        ),
    ),
    "nccl": (
        "torch",
        _LIBRARY.format(
            "nvidia/nccl/lib/libnccl.so.2",
            "v = ctypes.c_int(); assert library.ncclGetVersion(ctypes.byref(v)) == 0 and v.value == 23007",
        ),
    ),
}
"""By the key of the wheel: the environment, and what runs there."""

CALLS = {
    "cublas-aarch64": {
        "nvidia/cublas/lib/libcublasLt.so.12": ("cublasLtGetVersion", "120603"),
        "nvidia/cublas/lib/libcublas.so.12": ("cublasGetCudartVersion", "12030"),
    },
}
"""AArch64 libraries, a function of each and what it returns."""


def check(wheels: Sequence[Pruned]) -> str:
    """Install the wheels over their originals in a copy of the first one's environment, and run its lines."""
    if wheels[0].key in CALLS:
        return load_under_qemu(wheels[0])
    name, lines = IMPORTS[wheels[0].key]
    if not (directory() / name).exists():
        pytest.skip(f"no environment to import it in: python tests/real/environments.py {name}")
    with copied(name) as environment:
        python = str(environment / "bin" / "python")
        install(python, [one.wheel for one in wheels])
        return must([python, "-c", lines], env=clean()).strip() or "ok"


def load_under_qemu(pruned: Pruned) -> str:
    """Another machine's wheel: load its libraries with that machine's loader, and call into them."""
    loader = Loader.make("aarch64", Path(tempfile.mkdtemp(dir=pruned.scratch)))
    tree = pruned.unpacked(pruned.wheel)
    for path, (function, value) in CALLS[pruned.key].items():
        assert loader.load(tree / path, function).values == {function: value}
    return "loaded under qemu"


def install(python: str, wheels: Sequence[Path]) -> None:
    """Put wheels over what an environment has."""
    quiet = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--force-reinstall", "--isolated"]
    must([python, "-m", "pip", "install", "--disable-pip-version-check", *quiet, *map(str, wheels)])


def clean() -> dict[str, str]:
    """Variables for a child that must not see this checkout or another Python's packages."""
    return {"PYTHONPATH": "", "PYTHONNOUSERSITE": "1", "LD_LIBRARY_PATH": "", "CUDA_MODULE_LOADING": "LAZY"}
