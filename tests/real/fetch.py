"""Fetch real wheels from PyPI into the cache: ``python tests/real/fetch.py [KEY…]``.

The cache is $WHEELSLIM_TEST_CACHE, ``~/.cache/wheelslim/wheels`` by default. Without keys it prints the
list; ``small`` stands for what ``make test-real`` needs, ``all`` for everything (about 6 GiB).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RealWheel:
    """A wheel on PyPI; ``size`` in MiB. ``python`` and ``platform`` are pip's words for the tags."""

    project: str
    version: str
    size: int
    platform: str
    shows: str
    python: str = "3.11"
    machine: str = "x86_64"

    @property
    def pattern(self) -> str:
        """Glob for the file's name in the cache."""
        return f"{self.project.replace('-', '_')}-{self.version}-*{self.machine}.whl"


_28, _27, _24, _18 = (f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 24, 18))
_2014 = "manylinux2014_x86_64"

WHEELS = {
    "cuobjdump": RealWheel("nvidia-cuda-cuobjdump", "13.5.37", 1, _2014, "the judge"),
    "cuobjdump-12": RealWheel("triton", "3.1.0", 200, _2014, "holds cuobjdump 12.4, for cubins of CUDA 12.1"),
    "torchvision": RealWheel(
        "torchvision", "0.29.1", 7, _28, "uncompressed entries and PTX; an auditwheel-renamed libnvjpeg"
    ),
    "bitsandbytes": RealWheel(
        "bitsandbytes", "0.50.2", 41, _24, "ten libraries for ten CUDA versions; __nv_relfatbin"
    ),
    "cupy-cuda13x": RealWheel(
        "cupy-cuda13x", "14.2.0", 67, _2014, "extension modules; LZ4; 13 architectures in one container"
    ),
    "cupy-cuda12x": RealWheel("cupy-cuda12x", "14.2.0", 130, _2014, "the same for CUDA 12"),
    "curand": RealWheel("nvidia-curand", "10.4.5.25", 74, _27, "a small NVIDIA library"),
    "xgboost": RealWheel("xgboost", "3.2.0", 126, _28, "PTX and six architectures, LZ4"),
    "cusparselt": RealWheel("nvidia-cusparselt-cu13", "0.10.0", 162, _2014, ".cask_resource"),
    "nvshmem": RealWheel("nvidia-nvshmem-cu13", "3.8.0", 174, _2014, "-rdc; 299 MiB of symbols"),
    "cufft": RealWheel("nvidia-cufft", "12.0.0.61", 204, _2014, "23,983 containers in .ldata"),
    "nccl": RealWheel(
        "nvidia-nccl-cu13", "2.30.7", 206, _18, "-rdc: 122 MiB of __nv_relfatbin; debug sections"
    ),
    "cusparse": RealWheel("nvidia-cusparse", "12.9.4.2", 220, _2014, "containers in .rodata"),
    "cusolver": RealWheel("nvidia-cusolver", "12.4.1.2", 248, _27, "a container without a reference"),
    "nccl-aarch64": RealWheel(
        "nvidia-nccl-cu12",
        "2.31.2",
        326,
        "manylinux_2_18_aarch64",
        "containers aligned to 256",
        machine="aarch64",
    ),
    "cublas-aarch64": RealWheel(
        "nvidia-cublas-cu12",
        "12.6.3.3",
        373,
        "manylinux2014_aarch64",
        "64 KiB pages; .hash",
        machine="aarch64",
    ),
    "cublas": RealWheel(
        "nvidia-cublas", "13.1.1.3", 404, _27, "2,782 containers; .cask_resource, .lrodata, .ldata"
    ),
    "flashinfer-cubin": RealWheel(
        "flashinfer-cubin", "0.6.13", 437, "any", "15,970 loose cubins", machine="any"
    ),
    "triton": RealWheel(
        "triton", "3.9.0", 210, _28, "no device code, 293 MiB of symbols and debug information"
    ),
    "cudnn": RealWheel("nvidia-cudnn-cu13", "9.24.0.43", 527, _27, "nine libraries, .cask_resource"),
    "torch": RealWheel("torch", "2.14.1", 529, _28, "the main case: 475 containers, zstd, patchelf'd"),
    "torch-2.1": RealWheel(
        "torch", "2.1.2", 639, "manylinux1_x86_64", "CUDA 12.1, LZ4, sm_50 to sm_90, stored members"
    ),
}
SMALL = ("cuobjdump", "torchvision", "bitsandbytes", "cupy-cuda13x")


def find(key: str, cache: Path) -> Path | None:
    """Path of a fetched wheel, or None."""
    return next(iter(sorted(cache.glob(WHEELS[key].pattern))), None)


def fetch(key: str, cache: Path) -> Path:
    """Fetch one wheel unless it is there."""
    wheel, there = WHEELS[key], find(key, cache)
    if there is not None:
        return there
    cache.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--dest", str(cache), f"--python-version={wheel.python}", f"--platform={wheel.platform}"]
    subprocess.run([*command, f"{wheel.project}=={wheel.version}"], check=True)
    fetched = find(key, cache)
    if fetched is None:
        raise SystemExit(f"pip fetched {key} under another name than {wheel.pattern}")
    return fetched


def main() -> None:
    """Fetch what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("keys", nargs="*", help="keys, 'small' or 'all'")
    cache = Path(os.environ.get("WHEELSLIM_TEST_CACHE", "~/.cache/wheelslim/wheels")).expanduser()
    keys = parser.parse_args().keys
    unknown = set(keys) - set(WHEELS) - {"small", "all"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for key in keys:
        for one in {"small": SMALL, "all": tuple(WHEELS)}.get(key, (key,)):
            print(fetch(one, cache))
    if not keys:
        for key, wheel in WHEELS.items():
            state = "fetched" if find(key, cache) else ""
            print(f"{key:18}{wheel.size:5} MiB  {state:8} {wheel.project}=={wheel.version}: {wheel.shows}")


if __name__ == "__main__":
    main()
