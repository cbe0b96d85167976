"""Prune a small real CUDA wheel for one kind of GPU and show it before and after.

Needs neither nvcc nor a GPU. The slimmed wheel is left in examples/demo/slim/.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
OUTPUT = HERE / "slim"


def wheel_line(path: Path) -> str:
    """Size of a wheel as a file and installed."""
    with zipfile.ZipFile(path) as archive:
        installed = sum(member.file_size for member in archive.infolist())
    return f"{path.stat().st_size:>9,} bytes, installed {installed:>9,}  {path.name}"


def main() -> int:
    """Run ``wheelslim prune`` on the wheel beside this file."""
    original = next(HERE.glob("cuda_demo-*.whl"))
    command = ["prune", "--arch", "sm_86", str(original.relative_to(HERE)), "-o", OUTPUT.name, "--force"]
    print(f"$ wheelslim {' '.join(command)}\n", flush=True)
    done = subprocess.run([sys.executable, "-m", "wheelslim", *command], cwd=HERE, check=False)
    if done.returncode:
        return done.returncode
    slimmed = max(OUTPUT.glob("*.whl"), key=lambda path: path.stat().st_mtime_ns)
    print(f"\nbefore  {wheel_line(original)}")
    print(f"after   {wheel_line(slimmed)}")
    print(f"\nIt installs like any other wheel:  pip install {os.path.relpath(slimmed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
