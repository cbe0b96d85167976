"""Matrix products: cuBLAS, cuBLASLt, cuSPARSELt and the kernels of PyTorch's own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812

from gpu.bench import operation, short

if TYPE_CHECKING:
    from gpu.bench import Bench, Tensors

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64)

# Matrix products: cuBLAS, cuBLASLt and the kernels of PyTorch's own.


def _matmul(bench: Bench, dtype: torch.dtype) -> Tensors:
    found = []
    for rows, inner, columns in ((1024, 1024, 1024), (127, 333, 65), (1, 4096, 4096), (4096, 64, 17)):
        a = bench.normal(bench.size(rows), bench.size(inner), dtype=dtype)
        b = bench.normal(bench.size(inner), bench.size(columns), dtype=dtype, seed=2)
        found += [a @ b, b.mT @ a.mT]
    batch = bench.normal(9, bench.size(128), bench.size(96), dtype=dtype)
    return (*found, torch.bmm(batch, batch.mT), batch[0] @ batch[0, 0])


def _cublaslt(bench: Bench, dtype: torch.dtype) -> Tensors:
    """Every transposition and epilogue, with cuBLASLt preferred for all of it."""
    torch.backends.cuda.preferred_blas_library("cublaslt")
    try:
        found = []
        for rows, inner, columns in ((256, 512, 384), (2048, 2048, 2048), (8, 8192, 1024), (100, 72, 56)):
            x = bench.normal(bench.size(rows), bench.size(inner), dtype=dtype)
            w = bench.normal(bench.size(columns), bench.size(inner), dtype=dtype, seed=2)
            bias = bench.normal(bench.size(columns), dtype=dtype, seed=3)
            found += [F.linear(x, w, bias), x @ w.mT, w @ x.mT, torch.addmm(bias, x, w.mT)]
            if not dtype.is_complex:
                found += [torch._addmm_activation(bias, x, w.mT, use_gelu=gelu) for gelu in (False, True)]
        return tuple(found)
    finally:
        torch.backends.cuda.preferred_blas_library("default")


def _enter_matmuls() -> None:
    for dtype in FLOATS:
        operation(f"matmul_{short(dtype)}")(partial(_matmul, dtype=dtype))
        operation(f"cublaslt_{short(dtype)}")(partial(_cublaslt, dtype=dtype))


_enter_matmuls()


@operation("matmul_tf32")
def _matmul_tf32(bench: Bench) -> Tensors:
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return _matmul(bench, torch.float32)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


@operation("matmul_int8")
def _matmul_int8(bench: Bench) -> Tensors:
    a = bench.integers(127, bench.size(512), bench.size(1024), dtype=torch.int8, low=-127)
    b = bench.integers(127, bench.size(256), bench.size(1024), dtype=torch.int8, low=-127, seed=2)
    return (torch._int_mm(a, b.t()),)


def _scaled(bench: Bench, left: torch.dtype, right: torch.dtype, output: torch.dtype) -> Tensors:
    a = bench.normal(bench.size(512), bench.size(1024)).to(left)
    b = bench.normal(bench.size(256), bench.size(1024), seed=2).to(right)
    one = torch.ones((), device=bench.device)
    return (torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=output),)


@operation("cublaslt_fp8_e4m3")
def _fp8(bench: Bench) -> Tensors:
    return _scaled(bench, torch.float8_e4m3fn, torch.float8_e4m3fn, torch.bfloat16)


@operation("cublaslt_fp8_e5m2")
def _fp8_mixed(bench: Bench) -> Tensors:
    return _scaled(bench, torch.float8_e5m2, torch.float8_e4m3fn, torch.float16)


@operation("semi_structured")
def _semi_structured(bench: Bench) -> Tensors:
    """Two of four weights are zero: cuSPARSELt."""
    kind = torch.sparse.SparseSemiStructuredTensor
    kind._FORCE_CUTLASS = False
    found = []
    for dtype in (torch.float16, torch.bfloat16, torch.int8):
        mask = torch.tensor([0, 0, 1, 1], device=bench.device, dtype=torch.bool).tile((256, 128))
        dense = bench.integers(7, 256, 512, dtype=dtype, low=-7) * mask
        x = bench.integers(7, 512, 128, dtype=dtype, low=-7, seed=2)
        found.append(torch.mm(torch.sparse.to_sparse_semi_structured(dense), x))
    return tuple(found)


@operation("semi_structured_cutlass")
def _semi_structured_cutlass(bench: Bench) -> Tensors:
    kind = torch.sparse.SparseSemiStructuredTensor
    kind._FORCE_CUTLASS = True
    try:
        mask = torch.tensor([0, 0, 1, 1], device=bench.device, dtype=torch.bool).tile((256, 128))
        dense = bench.normal(256, 512, dtype=torch.float16) * mask
        x = bench.normal(512, 128, dtype=torch.float16, seed=2)
        return (torch.mm(torch.sparse.to_sparse_semi_structured(dense), x),)
    finally:
        kind._FORCE_CUTLASS = False
