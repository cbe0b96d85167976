"""The child process: run operations on whatever PyTorch is imported, and write each one's result at once.

    python -m gpu.workload --device cuda --results DIR [--small] [--only PREFIX…]

Runs in the directory above, so that this one's module names hide nobody else's.
Writes ``DIR/NAME.pt`` for each operation, ``DIR/current`` while one runs (so that the parent knows which
one killed the process), and ``DIR/about.json`` with the libraries that are mapped. Exit 75 asks to be started
again: an error has spoiled the CUDA context.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch

from gpu import kernels, networks, packages, products, transforms
from gpu.bench import OPERATIONS, Bench

ENTERED = (products, networks, transforms, kernels, packages)
"""Modules whose operations are in OPERATIONS once they are imported."""

AGAIN = 75
SPOILING = ("CUDA error", "CUBLAS_STATUS", "CUDNN_STATUS", "CUFFT_", "cudaError")


def main() -> int:
    """Run what has no result yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", nargs="*", default=[""])
    options = parser.parse_args()
    results: Path = options.results
    deterministic()
    bench = Bench(options.device, options.small)
    chosen = [name for name in OPERATIONS if name.startswith(tuple(options.only))]
    for name in chosen:
        target = results / f"{name}.pt"
        if target.exists():
            continue
        (results / "current").write_text(name)
        outcome = perform(name, bench)
        torch.save(outcome, target.with_suffix(".part"))
        target.with_suffix(".part").rename(target)
        (results / "current").unlink()
        if any(word in str(outcome.get("error", "")) for word in SPOILING):
            return AGAIN
    (results / "about.json").write_text(json.dumps(about(options.device), indent=1))
    return 0


def perform(name: str, bench: Bench) -> dict[str, object]:
    """Run one operation; its tensors on the CPU, or the error that it ended with."""
    start = time.perf_counter()
    try:
        tensors = [tensor.detach().cpu().resolve_conj().resolve_neg() for tensor in OPERATIONS[name](bench)]
        if bench.device == "cuda":
            torch.cuda.synchronize()
    except Exception as error:  # whatever it is, the other side must say the same
        return {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
    return {"tensors": tensors, "seconds": time.perf_counter() - start}


def deterministic() -> None:
    """Choose the same algorithms each time, as far as PyTorch can be told to."""
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_num_threads(min(2, os.cpu_count() or 1))


def about(device: str) -> dict[str, object]:
    """Versions, and the files of all libraries that the process has mapped."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = sorted({line.split(maxsplit=5)[5] for line in maps if ".so" in line})
    found: dict[str, object] = {"torch": torch.__version__, "file": torch.__file__, "mapped": mapped}
    if device == "cuda":
        found["gpu"] = torch.cuda.get_device_name()
        found["capability"] = list(torch.cuda.get_device_capability())
        found["cuda"] = torch.version.cuda
        found["cudnn"] = torch.backends.cudnn.version()
        found["modules"] = os.environ.get("CUDA_MODULE_LOADING", "")
    return found


if __name__ == "__main__":
    sys.exit(main())
