"""Short names for what is gone: operators and source files, read off kernels' names."""

from __future__ import annotations

import re

from wheelslim.kernels.spelling import ANONYMOUS, base_name, leaf, signature

_SOURCE = re.compile(r"_(?:GLOBAL__N_|INTERNAL)_[0-9a-f]{8}_\d+_(\w+?)_cu_[0-9a-f]{8}")
"""What nvcc makes of a .cu file's name for its internal names (measured, nvcc 11 to 13)."""

_WORD = re.compile(r"[A-Za-z_$][\w$]*(?:::[A-Za-z_$][\w$]*)*")

_FRAMES = re.compile(
    r"\w*elementwise_kernel\w*|\w*elementwise_grid_stride_kernel|reduce_kernel|multi_tensor_apply_kernel"
    r"|kernelPointwiseApply\d|kernelHistogram1D|static_kernel|transform_kernel|Kernel2?|device_kernel"
)
"""Kernels of PyTorch, CUB and CUTLASS that run whatever their template arguments name."""

_FILLING = re.compile(
    r"gpu_kernel_\w+|ReduceOp|func_wrapper_t|\w*Metadata|array|\w*OffsetCalculator|\w*Cast|\w*_and_transform"
    r"|\w*Generator\w*|TensorIterator\w*|elementwise_kernel|\w*[Ll]ambda\w*"
)
"""Template arguments that say nothing about the operator."""

_PLAIN = frozenset(
    ("bool", "char", "signed", "unsigned", "short", "int", "long", "float", "double", "void", "half")
)


def operator_name(name: str) -> str:
    """Return what a kernel computes, as far as its demangled name tells: ``at::native::neg_kernel_cuda``."""
    base = base_name(name)
    if name.startswith("_Z") or _FRAMES.fullmatch(leaf(name)) is None:
        return _tidy(base)
    for word in _WORD.findall(signature(name)[len(base) :]):
        last = word.rsplit("::", 1)[-1]
        if word.startswith(("std::", "c10::", "thrust::", "cuda::")) or word in _PLAIN:
            continue
        if _FILLING.fullmatch(last) is None and last != ANONYMOUS:
            return _tidy(word)
    return _tidy(base)


def source_name(mangled: str) -> str | None:
    """Return the CUDA source that a kernel comes from (``SoftMax.cu``), where its name tells."""
    found = _SOURCE.search(mangled)
    return f"{found[1]}.cu" if found else None


def _tidy(name: str) -> str:
    """Leave out anonymous namespaces, and cut at the first lambda."""
    return name.replace(ANONYMOUS + "::", "").split("::$")[0]
