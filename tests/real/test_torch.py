"""PyTorch with its large wheels pruned: it works, and the CUDA runtime is handed what it should get."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from integration.pruning import check_registered
from real import imports
from real.environments import copied, directory
from real.pruned import prune

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from judges.loader import Loader, Registered
    from real.pruned import Pruned

pytestmark = [pytest.mark.real, pytest.mark.slow]

SPIED = "import torch; assert torch.ones(2) @ torch.ones(2) == 2"


@pytest.fixture(scope="module", params=["sm_80,sm_86", "sm_90"])
def wheels(
    request: pytest.FixtureRequest,
    real_wheel: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[Pruned]]:
    """The wheels of torch, cuBLAS and NCCL, pruned."""
    if not (directory() / "torch").exists():
        pytest.skip("no environment with PyTorch: python tests/real/environments.py torch")
    scratch = tmp_path_factory.mktemp("torch")
    keys = ("torch", "cublas", "nccl")
    found = []
    for key in keys:
        (scratch / key).mkdir()
        found.append(prune(key, request.param, real_wheel(key), scratch / key))
    yield found
    shutil.rmtree(scratch)


def test_pytorch_works_on_the_cpu(wheels: list[Pruned]) -> None:
    assert imports.check(wheels).startswith("torch 2.14.1")


def test_the_runtime_gets_the_same_containers_with_exactly_the_kept_entries(
    wheels: list[Pruned], loader: Loader, tmp_path: Path
) -> None:
    """A spy between PyTorch and the real CUDA runtime lists what ``__cudaRegisterFatBinary`` is handed."""
    with copied("torch") as environment:
        python = str(environment / "bin" / "python")
        before = spied(python, loader, tmp_path / "before")
        imports.install(python, [one.wheel for one in wheels])
        after = spied(python, loader, tmp_path / "after")
    # What links the runtime dynamically; cuBLAS, cuDNN, … have a private one that no spy can stand before.
    assert Counter(one.file for one in before) == {"libtorch_cuda.so": 475, "libtorch_nvshmem.so": 1}
    assert [one.file for one in after] == [one.file for one in before]
    check_registered(before, after, wheels[0].devices)


def spied(python: str, loader: Loader, log: Path) -> tuple[Registered, ...]:
    """Import PyTorch under the spy."""
    return loader.spied([python, "-c", SPIED], log)
