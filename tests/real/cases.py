"""The wheels that are pruned and judged, and for which devices."""

from __future__ import annotations

from dataclasses import dataclass

from real.fetch import SMALL


@dataclass(frozen=True)
class Case:
    """A wheel by its key in fetch.py, and the targets."""

    key: str
    arch: str

    @property
    def is_small(self) -> bool:
        """Whether it belongs to ``make test-real``."""
        return self.key in SMALL

    def __str__(self) -> str:
        """For the names of tests."""
        return f"{self.key}-{self.arch.replace('sm_', '').replace(',', '+')}"


KEYS = (
    "torch",
    "torchvision",
    "cupy-cuda13x",
    "bitsandbytes",
    "xgboost",
    "cublas",
    "nccl",
    "torch-2.1",
    "cublas-aarch64",
)
ARCHES = ("sm_80,sm_86", "sm_90")
CASES = tuple(Case(key, arch) for key in KEYS for arch in ARCHES)
