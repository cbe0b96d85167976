"""Memory does not grow with the library: 2 GiB inflated, cut, deflated and read back."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from builders.rewriters import MARK
from builders.wheel import Wheel

TESTS = Path(__file__).parents[1]
LIMIT = 150 << 20
PART = MARK + random.Random(9).randbytes(40_000) + bytes(4 << 20)

CHILD = r"""
import re, sys
from pathlib import Path
from builders.rewriters import CuttingRewriter, cut
from wheelslim.archive.wheel import WheelArtifact
from wheelslim.archive.wheel_rewrite import WheelOptions, rewrite_wheel

class Streaming(CuttingRewriter):
    def confirm(self, name, original, written):
        size = sum(len(block) for block in written.blocks())
        assert size == sum(piece.size for piece in cut(original.size))

with WheelArtifact(Path(sys.argv[1])) as artifact:
    result = rewrite_wheel(artifact, Path(sys.argv[2]), Streaming(), WheelOptions(jobs=int(sys.argv[3])))
assert result.changed[0].size_before > 2 << 30
# Not ru_maxrss: that begins with the peak of the process that started this one.
print(int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.parametrize("jobs", ["2", "8"])
def test_a_library_of_2_gib_needs_little_memory(jobs: str, tmp_path: Path) -> None:
    wheel = large_wheel(tmp_path)
    (tmp_path / "out.whl").touch()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(wheel), str(tmp_path / "out.whl"), jobs],
        env={**os.environ, "PYTHONPATH": f"{TESTS.parent / 'src'}:{TESTS}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < LIMIT
    with zipfile.ZipFile(tmp_path / "out.whl") as archive:
        assert archive.testzip() is None


def large_wheel(directory: Path) -> Path:
    """Put a library of 2 GiB into a wheel, and its row into RECORD."""
    count = (2 << 30) // len(PART) + 1
    digest = hashlib.sha256()
    for _ in range(count):
        digest.update(PART)
    hashed = base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")
    name = "demo/huge.so"
    wheel = Wheel({"demo/__init__.py": b""})
    record = wheel.members()[f"{wheel.folder}/RECORD"].data.decode()
    path = Wheel(
        {"demo/__init__.py": b""}, record=f"{name},sha256={hashed},{count * len(PART)}\n{record}".encode()
    ).write(directory)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(count):
            member.write(PART)
    return path
