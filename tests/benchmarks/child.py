"""A command as a child process, with what it cost by the system's own account.

The kernel counts into a process's peak what its parent held when it forked. So each command is started by a
small process that runs this file and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Step:
    """One command and the directory that it runs in."""

    command: tuple[str, ...]
    directory: Path


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock, seconds of all cores, and the largest peak of memory (``ru_maxrss``) in bytes.

    A peak below that of the small process, some 10 MiB, shows as that.
    """

    wall: float
    cpu: float
    peak: int

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.peak, other.peak))


def cost_of(
    steps: Sequence[Step],
    environment: dict[str, str],
    log: Path,
    watch: Callable[[int], object] | None = None,
) -> Cost:
    """Run ``steps`` one after the other; ``watch`` is told the process id that each descends from.

    What they print goes to ``log``.

    Raises:
        SystemExit: one fails.
    """
    total = Cost(0.0, 0.0, 0)
    for step in steps:
        with log.open("wb") as output:
            parent = subprocess.Popen(
                (sys.executable, "-I", "-S", __file__, *step.command),
                cwd=step.directory,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
            )
            if watch is not None:
                watch(parent.pid)
            told = json.loads(parent.communicate()[0])
        if told["code"]:
            tail = log.read_text(errors="replace")[-2000:]
            raise SystemExit(f"{' '.join(step.command)}: exit code {told['code']}\n{tail}")
        total += Cost(told["wall"], told["cpu"], told["peak"])
    return total


def main() -> None:
    """Run the command in the arguments, its output to standard error, and print what it cost."""
    start = time.perf_counter()
    child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
    _, status, usage = os.wait4(child, 0)
    cost = {
        "wall": time.perf_counter() - start,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss * 1024,
        "code": os.waitstatus_to_exitcode(status),
    }
    print(json.dumps(cost))


if __name__ == "__main__":
    main()
