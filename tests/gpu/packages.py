"""Other packages, where they are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gpu.bench import operation

if TYPE_CHECKING:
    from gpu.bench import Bench, Tensors

# Other packages, where they are installed.


@operation("torchvision")
def _torchvision(bench: Bench) -> Tensors:
    from torchvision import ops

    corner = bench.normal(300, 2).abs() * 50
    boxes = torch.cat((corner, corner + 1 + bench.normal(300, 2, seed=2).abs() * 20), 1)
    features = bench.normal(2, 8, 40, 40, seed=3)
    rois = [boxes[:20], boxes[20:50]]
    offsets = bench.normal(2, 18, 40, 40, seed=4)
    return (
        ops.nms(boxes, bench.normal(300, seed=5), 0.5),
        ops.roi_align(features, rois, 7),
        ops.roi_pool(features, rois, 7),
        ops.ps_roi_align(features, rois, 2),
        ops.deform_conv2d(features, offsets, bench.normal(4, 8, 3, 3, seed=6), padding=1),
    )


@operation("cupy")
def _cupy(bench: Bench) -> Tensors:
    """CuPy's own extension modules, and cuBLAS, cuFFT, cuRAND and cuSOLVER through it."""
    if bench.device == "cpu":
        raise NotImplementedError("CuPy needs a device")
    import cupy

    a = cupy.asarray(bench.normal(129, 129))
    cupy.random.seed(5)
    generator = cupy.random.Generator(cupy.random.Philox4x3210(seed=5))
    found = (
        a @ a,
        cupy.sort(a, axis=None),
        cupy.argsort(a, axis=1),
        cupy.fft.fft(a),
        cupy.linalg.solve(a + 129 * cupy.eye(129), a),
        a.sum(axis=0),
        cupy.random.rand(1001),
        generator.standard_normal(1001),
        generator.gamma(2.0, size=1001),
        cupy.partition(a.ravel(), 50),
        cupy.unique(cupy.rint(a)),
    )
    return tuple(torch.as_tensor(one, device="cuda") for one in found)
