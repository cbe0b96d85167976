"""Fourier transforms and linear algebra: cuFFT, cuSOLVER, cuBLAS, cuSPARSE, MAGMA."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from gpu.bench import operation, short

if TYPE_CHECKING:
    from gpu.bench import Bench, Tensors

# Fourier transforms: cuFFT. Lengths with small, large and mixed prime factors.

FFT_LENGTHS = (2, 7, 16, 17, 60, 64, 127, 128, 243, 343, 360, 509, 1009, 1024, 2401, 4096, 4099, 15015, 65536)


def _fft(bench: Bench, dtype: torch.dtype) -> Tensors:
    found = []
    for length in FFT_LENGTHS:
        x = bench.normal(3, length, dtype=dtype)
        found += [torch.fft.fft(x), torch.fft.ifft(x)]
        if not dtype.is_complex:
            found += [torch.fft.rfft(x), torch.fft.irfft(torch.fft.rfft(x), n=length)]
    return tuple(found)


def _enter_ffts() -> None:
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        operation(f"fft_{short(dtype)}")(partial(_fft, dtype=dtype))


_enter_ffts()


@operation("fft_float16")
def _fft_half(bench: Bench) -> Tensors:
    return tuple(torch.fft.fft(bench.normal(3, 2**n, dtype=torch.float16)) for n in range(1, 14))


@operation("fft_2d_3d")
def _fft_many(bench: Bench) -> Tensors:
    plane, cube = bench.normal(2, 97, 120), bench.normal(15, 21, 33)
    return (
        torch.fft.fft2(plane),
        torch.fft.rfft2(plane),
        torch.fft.irfft2(torch.fft.rfft2(plane), s=plane.shape[-2:]),
        torch.fft.fftn(cube),
        torch.fft.ifftn(torch.fft.fftn(cube)),
        torch.stft(plane[0, 0], 33, window=torch.hann_window(33, device=bench.device), return_complex=True),
    )


# Linear algebra: cuSOLVER, cuBLAS, MAGMA.


def _solve(bench: Bench, dtype: torch.dtype) -> Tensors:
    n = bench.size(193)
    a = bench.normal(3, n, n, dtype=dtype) + n * torch.eye(n, device=bench.device, dtype=dtype)
    b = bench.normal(3, n, 5, dtype=dtype, seed=2)
    hermitian = a @ a.mH / n
    return (
        torch.linalg.solve(a, b),
        torch.linalg.inv(a),
        torch.linalg.cholesky(hermitian),
        torch.cholesky_solve(b, torch.linalg.cholesky(hermitian)),
        *torch.linalg.lu_factor(a),
        *torch.linalg.qr(a),
        torch.linalg.eigvalsh(hermitian),
        torch.linalg.svdvals(a),
        torch.linalg.det(a / n),
        torch.linalg.solve_triangular(torch.tril(a), b, upper=False),
        torch.linalg.lstsq(a, b).solution,
        torch.linalg.matrix_exp(a[0] / (n * n)),
    )


def _enter_solves() -> None:
    for dtype in (torch.float32, torch.float64, torch.complex64):
        operation(f"solve_{short(dtype)}")(partial(_solve, dtype=dtype))


_enter_solves()


@operation("sparse")
def _sparse(bench: Bench) -> Tensors:
    n = bench.size(256)
    dense = bench.normal(n, n) * (bench.integers(10, n, n) == 0)
    x = bench.normal(n, 33, seed=2)
    csr = dense.to_sparse_csr()
    return (csr @ x, torch.sparse.mm(dense.to_sparse(), x), (csr @ csr).to_dense(), csr @ x[:, 0])
