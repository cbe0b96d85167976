"""What networks are made of: cuDNN, attention, training steps, NCCL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from gpu.bench import operation, short

if TYPE_CHECKING:
    from gpu.bench import Bench, Tensors

# Convolutions and recurrences: cuDNN.


def _convolution(bench: Bench, dtype: torch.dtype, layout: torch.memory_format) -> Tensors:
    found = []
    for channels, filters, kernel, options in (
        (3, 64, 7, {"stride": 2, "padding": 3}),
        (64, 128, 3, {"padding": 1}),
        (128, 64, 1, {}),
        (32, 32, 3, {"groups": 32, "padding": 1}),
        (48, 40, 5, {"dilation": 2, "padding": 4}),
    ):
        x = bench.normal(4, channels, bench.size(57) | 1, bench.size(64) | 1, dtype=dtype)
        x = x.to(memory_format=layout).requires_grad_()
        w = bench.normal(filters, channels // options.get("groups", 1), kernel, kernel, dtype=dtype, seed=2)
        w = (w * 0.1).to(memory_format=layout).detach().requires_grad_()
        y = F.conv2d(x, w, **options)
        y.float().square().mean().backward()
        found += [y, x.grad, w.grad]
    return tuple(found)


def _enter_convolutions() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        for layout in (torch.contiguous_format, torch.channels_last):
            name = f"cudnn_conv2d_{short(dtype)}_{short(layout)}"
            operation(name)(partial(_convolution, dtype=dtype, layout=layout))


_enter_convolutions()


@operation("cudnn_conv_1d_3d_transposed")
def _other_convolutions(bench: Bench) -> Tensors:
    length, edge = bench.size(257), bench.size(33)
    return (
        F.conv1d(bench.normal(3, 8, length), bench.normal(16, 8, 5, seed=2), padding=2),
        F.conv3d(bench.normal(2, 4, 9, edge, edge), bench.normal(8, 4, 3, 3, 3, seed=2), padding=1),
        F.conv_transpose2d(bench.normal(2, 8, edge, edge), bench.normal(8, 6, 4, 4, seed=2), stride=2),
    )


@operation("cudnn_recurrent")
def _recurrent(bench: Bench) -> Tensors:
    found = []
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for dtype in (torch.float32, torch.float16):
            layer = bench.to(kind(32, 48, num_layers=2, bidirectional=True), dtype)
            found.append(layer(bench.normal(bench.size(65), 5, 32, dtype=dtype))[0])
    return tuple(found)


@operation("cudnn_norms_and_pools")
def _norms(bench: Bench) -> Tensors:
    x = bench.normal(6, 24, bench.size(65), bench.size(65)).requires_grad_()
    y = F.batch_norm(x, None, None, training=True)
    y = F.max_pool2d(y, 3, 2) + F.avg_pool2d(y, 3, 2)
    y.square().sum().backward()
    grid = bench.normal(6, 17, 17, 2, seed=3).tanh()
    return (
        y,
        x.grad,
        F.group_norm(x, 6),
        F.instance_norm(x),
        F.layer_norm(x, x.shape[2:]),
        F.adaptive_avg_pool2d(x, 7),
        F.interpolate(x, scale_factor=1.7, mode="bilinear"),
        F.interpolate(x, size=(31, 29), mode="bicubic"),
        F.grid_sample(x, grid, align_corners=False),
    )


# Attention.


def _attention(bench: Bench, backend: SDPBackend, dtype: torch.dtype) -> Tensors:
    found = []
    for head, causal in ((64, True), (128, False), (96, True)):
        shape = (2, 4, bench.size(256), head)
        q, k, v = (bench.normal(*shape, dtype=dtype, seed=seed).requires_grad_() for seed in (1, 2, 3))
        with sdpa_kernel(backend):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        y.float().square().sum().backward()
        found += [y, q.grad, k.grad, v.grad]
    return tuple(found)


def _enter_attentions() -> None:
    backends = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "math": SDPBackend.MATH,
    }
    for name, backend in backends.items():
        for dtype in (torch.float16, torch.bfloat16):
            full = f"attention_{name}_{short(dtype)}"
            operation(full)(partial(_attention, backend=backend, dtype=dtype))


_enter_attentions()


# Whole models, forwards, backwards and a step.


class _Small(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU())
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.stem(x).flatten(2).mT
        return self.head(self.layer(y).mean(1))


def _train(bench: Bench, optimizer: type[torch.optim.Optimizer], **options: object) -> Tensors:
    model = bench.to(_Small())
    step = optimizer(model.parameters(), lr=0.01, **options)
    for number in range(3):
        step.zero_grad()
        output = model(bench.normal(8, 3, 32, 32, seed=number))
        F.cross_entropy(output, bench.integers(10, 8)).backward()
        step.step()
    return tuple(parameter.detach() for parameter in model.parameters())


@operation("train_adamw_foreach")
def _train_foreach(bench: Bench) -> Tensors:
    return _train(bench, torch.optim.AdamW, foreach=True)


@operation("train_adamw_fused")
def _train_fused(bench: Bench) -> Tensors:
    return _train(bench, torch.optim.AdamW, fused=True)


@operation("train_sgd")
def _train_sgd(bench: Bench) -> Tensors:
    return _train(bench, torch.optim.SGD, momentum=0.9)


@operation("autocast")
def _autocast(bench: Bench) -> Tensors:
    model = bench.to(_Small()).eval()
    with torch.no_grad(), torch.autocast(bench.device, dtype=torch.bfloat16):
        return (model(bench.normal(4, 3, 32, 32)),)


@operation("graph")
def _graph(bench: Bench) -> Tensors:
    """Captured and replayed: kernels that are loaded lazily must be there by then."""
    if bench.device == "cpu":
        raise NotImplementedError("CUDA graphs need a device")
    x = bench.normal(257, 257)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = torch.tanh(x @ x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.tanh(x @ x)
    graph.replay()
    torch.cuda.synchronize()
    return (y,)


@operation("nccl_alone")
def _nccl(bench: Bench) -> Tensors:
    """One rank: NCCL initializes and its kernels for one device run."""
    import torch.distributed as dist

    backend = "gloo" if bench.device == "cpu" else "nccl"
    store = dist.HashStore()
    dist.init_process_group(backend, store=store, rank=0, world_size=1)
    try:
        x = bench.normal(bench.size(4099))
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        return (x,)
    finally:
        dist.destroy_process_group()
