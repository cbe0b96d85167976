"""Build the demo wheel from the kernels in cuda/. Needs nvcc 13.0 and the package ``wheel``.

Nobody has to run this to see the demo: the wheel is committed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from wheel.wheelfile import WheelFile

HERE = Path(__file__).parent
VERSION = "1.0.0"
TAG = "py3-none-manylinux_2_17_x86_64"
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
EPOCH = 1767225600
DATE = (2026, 1, 1, 0, 0, 0)
"""The same moment, for ``wheel`` and for zip."""
METADATA = f"""\
Metadata-Version: 2.1
Name: cuda-demo
Version: {VERSION}
Summary: A small CUDA library to try wheelslim on
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: nvidia-cuda-runtime>=13,<14
"""
WHEEL = f"""\
Wheel-Version: 1.0
Generator: examples/demo/build.py
Root-Is-Purelib: false
Tag: {TAG}
"""


def build_library(directory: Path) -> Path:
    """Compile all kernels for all architectures, and PTX for later ones, into one shared library."""
    target = directory / "libcuda_demo.so"
    kept = directory / "keep"
    kept.mkdir()
    codes = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in ARCHITECTURES]
    codes.append(f"-gencode=arch=compute_{ARCHITECTURES[-1]},code=compute_{ARCHITECTURES[-1]}")
    host = ["-Xcompiler", "-fPIC,-fno-exceptions,-fno-threadsafe-statics", "-Xlinker", "--as-needed"]
    same_bytes = ["--keep", "--keep-dir", str(kept), "--frandom-seed=demo"]
    options = ["-shared", "-cudart", "shared", "-Xfatbin", "-compress-all", *codes, *host, *same_bytes]
    sources = sorted(str(source.relative_to(HERE)) for source in HERE.glob("cuda/*.cu"))
    subprocess.run(["nvcc", *options, *sources, "-o", str(target)], cwd=HERE, check=True)
    return target


def build_wheel(library: Path) -> Path:
    """Put the library and the package into a wheel; RECORD is written by ``wheel``."""
    info = f"cuda_demo-{VERSION}.dist-info"
    members = {
        "cuda_demo/__init__.py": (HERE / "cuda_demo" / "__init__.py").read_bytes(),
        "cuda_demo/lib/libcuda_demo.so": library.read_bytes(),
        f"{info}/METADATA": METADATA.encode(),
        f"{info}/WHEEL": WHEEL.encode(),
    }
    path = HERE / f"cuda_demo-{VERSION}-{TAG}.whl"
    path.unlink(missing_ok=True)
    with WheelFile(str(path), "w") as wheel:
        for name, data in members.items():
            member = zipfile.ZipInfo(name, DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            wheel.writestr(member, data)
    return path


def main() -> int:
    """Build and say what came out."""
    os.environ["SOURCE_DATE_EPOCH"] = str(EPOCH)
    with tempfile.TemporaryDirectory() as directory:
        path = build_wheel(build_library(Path(directory)))
    print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
