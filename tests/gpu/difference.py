"""Compare the results of three runs: ``python -m gpu.difference ORIGINAL AGAIN PRUNED`` prints JSON.

Where two runs of the original agree to the bit, the pruned libraries have to agree to the bit. Where they do
not (atomic additions, say), the pruned run has to be as near to the original as the original is to itself.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

SLACK = 10
"""How many times the original's own spread the pruned run may differ by, where there is a spread."""

FLOOR = {torch.float16: 1e-2, torch.bfloat16: 1e-1, torch.float32: 1e-5, torch.complex64: 1e-5}
"""Relative to the largest value: a spread may be zero by luck in some of the tensors."""


def main() -> None:
    """Print ``{operation: {"verdict": …, "why": …}}``."""
    original, again, pruned = (Path(argument) for argument in sys.argv[1:4])
    names = sorted({path.stem for side in (original, again, pruned) for path in side.glob("*.pt")})
    found = {name: compare(*(load(side, name) for side in (original, again, pruned))) for name in names}
    print(json.dumps(found))


def load(side: Path, name: str) -> dict[str, Any]:
    """Read one result."""
    path = side / f"{name}.pt"
    found: dict[str, Any] = {"error": "no result"}
    if path.exists():
        found = torch.load(path, weights_only=True)
    return found


def compare(original: dict[str, Any], again: dict[str, Any], pruned: dict[str, Any]) -> dict[str, str]:
    """Judge one operation: ``same``, ``close``, ``not run`` or ``different``."""
    if "error" in original:
        if pruned.get("error") == original["error"]:
            return {"verdict": "not run", "why": original["error"]}
        return {
            "verdict": "different",
            "why": f"{original['error']} became {pruned.get('error', 'a result')}",
        }
    if "error" in pruned:
        return {"verdict": "different", "why": pruned["error"]}
    left, right = original["tensors"], pruned["tensors"]
    if [(t.shape, t.dtype) for t in left] != [(t.shape, t.dtype) for t in right]:
        return {"verdict": "different", "why": "other shapes or types"}
    spread = again.get("tensors", left)
    verdicts = [one(*tensors) for tensors in zip(left, spread, right, strict=True)]
    for number, verdict in enumerate(verdicts):
        if verdict not in ("same", "close"):
            return {"verdict": "different", "why": f"tensor {number} of {len(verdicts)}: {verdict}"}
    return {"verdict": "close" if "close" in verdicts else "same", "why": ""}


def one(original: torch.Tensor, again: torch.Tensor, pruned: torch.Tensor) -> str:
    """Judge one tensor; ``same`` and ``close`` are fine, other words say what is wrong."""
    if same(original, pruned):
        return "same"
    if same(original, again):
        return f"off by {off(original, pruned):.3g}, though the original repeats to the bit"
    if not original.dtype.is_floating_point and not original.dtype.is_complex:
        return "other integers"
    allowed = max(SLACK * off(original, again), FLOOR.get(original.dtype, 1e-12) * scale(original))
    found = off(original, pruned)
    return (
        "close" if found <= allowed else f"off by {found:.3g}; the original's own spread allows {allowed:.3g}"
    )


def same(one_: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors hold the same bits; NaN equals itself."""
    if one_.numel() == 0:
        return True
    return bool(torch.equal(*(t.contiguous().reshape(-1).view(torch.uint8) for t in (one_, other))))


def off(one_: torch.Tensor, other: torch.Tensor) -> float:
    """Largest difference; infinite where only one is finite."""
    wide = [wider(t) for t in (one_, other)]
    if not torch.equal(*(t.isfinite() for t in wide)):
        return float("inf")
    difference = (wide[0] - wide[1]).abs()
    return float(difference[wide[0].isfinite()].max()) if wide[0].isfinite().any() else 0.0


def scale(tensor: torch.Tensor) -> float:
    """Largest finite magnitude."""
    wide = wider(tensor)
    return float(wide[wide.isfinite()].abs().max()) if wide.isfinite().any() else 0.0


def wider(tensor: torch.Tensor) -> torch.Tensor:
    """In double precision."""
    return tensor.to(torch.complex128 if tensor.dtype.is_complex else torch.float64)


if __name__ == "__main__":
    main()
