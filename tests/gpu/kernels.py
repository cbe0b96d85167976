"""The bulk of PyTorch's own kernels: sorting, scattering, random numbers, elementwise, reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812

from gpu.bench import operation

if TYPE_CHECKING:
    from gpu.bench import Bench, Tensors

# Sorting, searching, scattering: CUB and Thrust.


@operation("sort")
def _sort(bench: Bench) -> Tensors:
    found = []
    for count in (17, 1024, 3001, 200_003):
        n = bench.size(count)
        for x in (bench.normal(n), bench.integers(1000, n), bench.normal(n, dtype=torch.float16)):
            values, indexes = torch.sort(x, stable=True)
            found += [values, indexes, torch.topk(x, min(9, n)).values, torch.unique(x), torch.cumsum(x, 0)]
        found += [
            torch.sort(bench.normal(7, n), dim=1).values,
            torch.sort(bench.integers(2, n).bool()).values,
        ]
    return tuple(found)


@operation("scatter")
def _scatter(bench: Bench) -> Tensors:
    n = bench.size(50_001)
    index, x = bench.integers(97, n), bench.integers(100, n, seed=2)
    zeros = torch.zeros(97, dtype=torch.int64, device=bench.device)
    return (
        zeros.scatter_add(0, index, x),
        zeros.index_add(0, index, x),
        torch.bincount(index),
        torch.histc(bench.normal(n), 31),
        torch.searchsorted(torch.arange(97, device=bench.device), index),
        torch.nonzero(index == 3),
        x[index].flip(0),
        torch.masked_select(x, index > 50),
        F.embedding(index, bench.normal(97, 24, seed=3)),
        F.one_hot(index[:100]),
    )


# Random numbers: Philox kernels of PyTorch.


@operation("random")
def _random(bench: Bench) -> Tensors:
    torch.manual_seed(1234)
    n, device = bench.size(40_009), bench.device
    found = [
        torch.rand(n, device=device),
        torch.randn(n, device=device, dtype=torch.float64),
        torch.randn(n, device=device, dtype=torch.float16),
        torch.randint(0, 1 << 40, (n,), device=device),
        torch.randperm(n, device=device),
        torch.empty(n, device=device).exponential_(),
        torch.empty(n, device=device).cauchy_(),
        torch.empty(n, device=device).log_normal_(),
        torch.empty(n, device=device).geometric_(0.3),
        torch.bernoulli(torch.full((n,), 0.3, device=device)),
        torch.poisson(torch.full((n,), 4.0, device=device)),
        torch._standard_gamma(torch.full((n,), 2.0, device=device)),
        torch.multinomial(torch.rand(50, device=device), 20),
        F.dropout(torch.ones(n, device=device), 0.4),
    ]
    return tuple(found)


# Elementwise and reductions: the bulk of PyTorch's kernels.

UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "digamma", "erf",
    "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "i0", "lgamma", "log", "log10", "log1p",
    "log2", "logit", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinc", "sinh",
    "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
SPECIAL = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr",
    "modified_bessel_k0", "ndtri",
]  # fmt: skip
REDUCTIONS = [
    "sum", "mean", "std", "var", "amax", "amin", "prod", "logsumexp", "norm", "median", "nansum",
    "argmax", "all", "any", "count_nonzero",
]  # fmt: skip


@operation("elementwise")
def _elementwise(bench: Bench) -> Tensors:
    found = []
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x = bench.normal(bench.size(4097), dtype=dtype).abs().clamp(0.01, 0.99)
        found += [getattr(torch, name)(x) for name in UNARY]
        y = x.flip(0)
        found += [x + y, x * y, x / y, x**y, torch.atan2(x, y), torch.fmod(x, y), torch.hypot(x, y), x > y]
        found += [torch.where(x > y, x, y), torch.lerp(x, y, 0.3), torch.addcmul(x, y, y), x.to(torch.int32)]
        found += [f(x) for f in (F.gelu, F.silu, F.mish, F.softplus, F.hardswish, F.elu, F.selu)]
    return tuple(found)


@operation("special_by_nvrtc")
def _special(bench: Bench) -> Tensors:
    """Several of these are compiled at run time, through NVRTC."""
    x = bench.normal(bench.size(4097)).abs().clamp(0.01, 0.99)
    return tuple(getattr(torch.special, name)(x) for name in SPECIAL)


@operation("integers_and_bits")
def _integers(bench: Bench) -> Tensors:
    found = []
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        x = bench.integers(100, bench.size(3001), dtype=dtype)
        y = bench.integers(7, bench.size(3001), dtype=dtype, seed=2, low=1)
        found += [x + y, x * y, x // y, x % y, x & y, x | y, x ^ y, x << 1, x >> 1, ~x, torch.gcd(x, y)]
    return tuple(found)


@operation("reductions")
def _reductions(bench: Bench) -> Tensors:
    found = []
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x = bench.normal(bench.size(65), bench.size(1021), dtype=dtype)
        for name in REDUCTIONS:
            options = {"dim": 1} if name in ("logsumexp", "prod", "amax", "amin") else {}
            found.append(getattr(torch, name)(x, **options))
        found += [torch.softmax(x, 1), torch.log_softmax(x, 0), torch.cummax(x, 1).values, x.cumprod(1)]
        found += [torch.cdist(x.float()[:9], x.float()[9:20]), F.normalize(x), torch.logcumsumexp(x, 0)]
    return tuple(found)


@operation("losses")
def _losses(bench: Bench) -> Tensors:
    n, classes = bench.size(257), 31
    logits = bench.normal(n, classes).requires_grad_()
    target = bench.integers(classes, n)
    loss = F.cross_entropy(logits, target, label_smoothing=0.1) + F.multi_margin_loss(logits, target)
    loss.backward()
    probabilities = bench.normal(40, 5, 12, seed=3).log_softmax(2)
    lengths = torch.full((5,), 40, dtype=torch.int64), torch.full((5,), 7, dtype=torch.int64)
    ctc = F.ctc_loss(probabilities, bench.integers(12, 5, 7, low=1), *lengths)
    return loss, logits.grad, ctc, F.mse_loss(logits, logits.flip(0)), F.smooth_l1_loss(logits, logits * 2)
