"""``inspect`` is quick and small: against cuobjdump on one library, and on a whole wheel.

CPU seconds are compared, since wall seconds would count what else the machine does; both programs run on
one core, so that on an idle machine these are the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from real.pruned import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump

pytestmark = [pytest.mark.real, pytest.mark.slow]

TIMES_FASTER = 30
SECONDS, PEAK = 3.0, 300 << 20
TRIES = 3
"""The quickest counts."""


def measured(*command: str) -> tuple[float, int]:
    """Run a command; CPU seconds and the largest resident size in bytes."""
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(SOURCES)}
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def inspected(path: Path) -> tuple[float, int]:
    runs = [measured(sys.executable, "-m", "wheelslim", "inspect", str(path)) for _ in range(TRIES)]
    return min(seconds for seconds, _ in runs), max(peak for _, peak in runs)


def test_a_library_takes_a_fraction_of_what_cuobjdump_takes(
    real_wheel: Callable[[str], Path], cuobjdump: Cuobjdump, tmp_path: Path
) -> None:
    with zipfile.ZipFile(real_wheel("torch")) as archive:
        path = tmp_path / archive.extract("torch/lib/libtorch_cuda.so", tmp_path)
    theirs, _ = measured(str(cuobjdump.program), "-lelf", str(path))
    ours, _ = inspected(path)
    path.unlink()
    print(f"cuobjdump {theirs:.2f} s, inspect {ours:.2f} s: {theirs / ours:.0f} times faster")
    assert theirs / ours >= TIMES_FASTER


def test_a_wheel_of_half_a_gigabyte_takes_seconds_and_little_memory(
    real_wheel: Callable[[str], Path],
) -> None:
    seconds, peak = inspected(real_wheel("torch"))
    print(f"inspect of the torch wheel: {seconds:.2f} s, {peak >> 20} MiB")
    assert seconds < SECONDS
    assert peak < PEAK
