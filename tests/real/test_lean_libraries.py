"""``--strip`` and ``--embedded`` on the libraries that they were made for."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from integration.pruning import prune
from judges import binutils, readelf
from wheelslim.elf.strip import StripMode
from wheelslim.plan import LtoPolicy, PtxPolicy, Request
from wheelslim.slim import LibraryOptions
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.slow]

MIB = 1 << 20
STRIP = LibraryOptions(strip=StripMode.ALL)
EMBEDDED = LibraryOptions(embedded=True)
LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1], mode=1)"


@dataclass(frozen=True)
class Case:
    """A library of a wheel, and how many MiB must go at least, on top of what the rule takes, for sm_86."""

    key: str
    library: str
    saves: float
    loads: bool = True

    def __str__(self) -> str:
        """For the names of tests."""
        return self.library


STRIPPED = [
    Case("torch", "libtorch_cpu.so", 86, loads=False),
    Case("torch", "libtorch_cuda.so", 73, loads=False),
    Case("triton", "libtriton.so", 293),
    Case("nccl", "libnccl.so.2", 47),
    Case("xgboost", "libxgboost.so", 37, loads=False),
    Case("torchvision", "image_stable.so", 0, loads=False),
]
PRUNED_INSIDE = [
    Case("cufft", "libcufft.so.12", 24),
    Case("cublas", "libcublasLt.so.13", 73),
    Case("cusparselt", "libcusparseLt.so.0", 60),
    Case("cudnn", "libcudnn_engines_precompiled.so.9", 19, loads=False),
    Case("curand", "libcurand.so.10", 22),
    Case("cusparse", "libcusparse.so.12", 7),
]


@pytest.fixture
def library(
    request: pytest.FixtureRequest, real_wheel: Callable[[str], Path], tmp_path: Path
) -> Iterator[tuple[Case, Path]]:
    """Unpack the library of a case; it goes again after the test, with what was made of it."""
    case: Case = request.param
    with zipfile.ZipFile(real_wheel(case.key)) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(f"/{case.library}"))
        path = tmp_path / case.library
        with wheel.open(name) as packed, path.open("wb") as file:
            shutil.copyfileobj(packed, file, MIB)
    yield case, path
    shutil.rmtree(tmp_path)


def check(case: Case, original: Path, changed: Path) -> None:
    """Readelf says no more of it than of the original, and it loads where the original loads by itself."""
    before, after = readelf.read(original), readelf.read(changed)
    assert set(after.complaints.splitlines()) <= set(before.complaints.splitlines())
    for load in after.loads:
        assert (load.offset - load.address) % load.align == 0
    if case.loads:
        subprocess.run([sys.executable, "-c", LOAD, str(changed)], check=True)


def check_tools(case: Case, original: Path, pruned: Path) -> None:
    """What strip and patchelf leave of the original, they leave of the pruned library."""
    tools: tuple[Callable[[Path, Path], Path], ...] = (binutils.strip, binutils.patchelf)
    for number, tool in enumerate(tools):
        reference = tool(original, original.with_name(f"reference{number}"))
        if any((load.offset - load.address) % load.align for load in readelf.read(reference).loads):
            continue  # strip spoils the original too, once patchelf has been at it.
        check(case, original, tool(pruned, pruned.with_name(f"changed{number}.so")))
        reference.unlink()


@pytest.mark.parametrize("library", STRIPPED, indirect=True, ids=str)
def test_symbols_and_debug_information_go(library: tuple[Case, Path], tmp_path: Path) -> None:
    case, original = library
    plain = prune(original, tmp_path / "plain.so", "sm_86")
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", STRIP)
    assert plain.account.size_after - pruned.account.size_after > case.saves * MIB
    check(case, original, pruned.path)
    plain.path.unlink()
    check_tools(case, original, pruned.path)


@pytest.mark.parametrize("library", PRUNED_INSIDE, indirect=True, ids=str)
def test_embedded_device_code_goes(library: tuple[Case, Path], tmp_path: Path) -> None:
    case, original = library
    plain = prune(original, tmp_path / "plain.so", "sm_86")
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", EMBEDDED)
    assert plain.account.size_after - pruned.account.size_after > case.saves * MIB
    check(case, original, pruned.path)
    plain.path.unlink()
    check_tools(case, original, pruned.path)


@pytest.mark.parametrize("library", PRUNED_INSIDE[:1], indirect=True, ids=str)
def test_cufft_without_lto_ir(library: tuple[Case, Path], tmp_path: Path) -> None:
    case, original = library
    request = Request(parse_targets("sm_86"), PtxPolicy.AUTO, lto=LtoPolicy.NONE)
    pruned = prune(original, tmp_path / "pruned.so", request, EMBEDDED)
    assert pruned.account.size_after < 142 * MIB
    check(case, original, pruned.path)
    version = ctypes.c_int()
    assert ctypes.CDLL(str(pruned.path)).cufftGetVersion(ctypes.byref(version)) == 0
    assert version.value == 12000
