"""No memory for one more thread: one message, exit code 5, no litter, and the next run is right.

The system refuses the n-th thread, as it does where memory is short. (Under ``ulimit -v`` a thread may
also start and find no memory for its first step: CPython 3.11 then waits for it for ever.)
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from builders.environment_trees import environment, temporaries
from builders.installed import record_faults
from builders.wheel import Member, Wheel

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = str(Path(__file__).parents[2] / "src")
DONE, IO = 0, 5
MANY = 99
REFUSING = """
import sys, threading
name = "_start_joinable_thread" if hasattr(threading, "_start_joinable_thread") else "_start_new_thread"
start, left = getattr(threading, name), int(sys.argv.pop(1))
def refuse(*words, **more):
    global left
    left -= 1
    if left < 0:
        raise RuntimeError("can't start new thread")
    return start(*words, **more)
setattr(threading, name, refuse)
from wheelslim.cli.app import main
main()
"""


def with_threads(number: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run wheelslim with ``number`` threads beside the main one."""
    return subprocess.run(
        [sys.executable, "-c", REFUSING, str(number), *words],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_prune_ends_in_order_without_threads(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    library = Member(corpus("many_archs").read_bytes(), 0o755)
    wheel = Wheel({f"demo/lib{n}.so": library for n in range(4)}, name="demo").write(tmp_path)
    codes = []
    for number in (0, 1, 2, 3, 4, 5, 6, MANY):
        out = tmp_path / f"out-{number}"
        result = with_threads(number, "prune", "-q", "-j2", "-a", "sm_86", "-o", str(out), str(wheel))
        codes.append(result.returncode)
        assert result.returncode in (DONE, IO), result.stderr
        left = list(out.iterdir()) if out.exists() else []
        assert len(left) == (result.returncode == DONE)
        if result.returncode == IO:
            assert result.stderr == "wheelslim: no memory for threads; what was not finished is removed\n"
    assert codes[:3] == [IO] * 3
    assert codes[-1] == DONE


def test_env_ends_in_order_without_threads(tmp_path: Path) -> None:
    codes = []
    for number in (0, 1, MANY):
        root = tmp_path / str(number)
        site = environment(root)
        result = with_threads(number, "env", "-q", "-j2", "-a", "sm_86", str(root))
        codes.append(result.returncode)
        assert result.returncode in (DONE, IO), result.stderr
        assert "Traceback" not in result.stderr
        assert [path for path in temporaries(root) if path.suffix == ".tmp"] == []
        assert with_threads(MANY, "env", "-q", "-a", "sm_86", str(root)).returncode == DONE
        assert temporaries(root) == []
        assert record_faults(site) == []
    assert codes[0] == IO
    assert codes[-1] == DONE
