"""Where the operations compute, where their input comes from, and the list of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Bench:
    """Where to compute: ``device`` is cuda, or cpu in a rehearsal, which is ``small``."""

    device: str
    small: bool = False

    def size(self, number: int) -> int:
        """A dimension for the device; much less in a rehearsal, and as odd."""
        return number if not self.small else max(3, number // 16) | (number & 1)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
        """Normally distributed numbers from the CPU's generator."""
        generator = torch.Generator().manual_seed(seed)
        base = torch.complex64 if dtype.is_complex else torch.float32
        return torch.randn(*shape, generator=generator, dtype=base).to(dtype).to(self.device)

    def integers(
        self, high: int, *shape: int, dtype: torch.dtype = torch.int64, seed: int = 1, low: int = 0
    ) -> torch.Tensor:
        """Integers from ``low`` up to ``high``, from the CPU's generator."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(low, high, shape, generator=generator).to(dtype).to(self.device)

    def to(self, module: nn.Module, dtype: torch.dtype = torch.float32) -> nn.Module:
        """A module with weights from a seed, on the device."""
        generator = torch.Generator().manual_seed(7)
        for parameter in module.parameters():
            parameter.data.copy_(torch.randn(parameter.shape, generator=generator) * 0.05)
        return module.to(self.device, dtype)


OPERATIONS: dict[str, Callable[[Bench], Tensors]] = {}
"""All of them by name, in the order in which they run."""


def operation(name: str) -> Callable[[Callable[[Bench], Tensors]], Callable[[Bench], Tensors]]:
    """Enter a function into OPERATIONS."""

    def enter(function: Callable[[Bench], Tensors]) -> Callable[[Bench], Tensors]:
        assert name not in OPERATIONS
        OPERATIONS[name] = function
        return function

    return enter


def short(dtype: torch.dtype) -> str:
    """``torch.bfloat16`` → ``bfloat16``."""
    return str(dtype).removeprefix("torch.")
