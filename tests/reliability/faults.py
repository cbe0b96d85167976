"""Faults of the disk at every call of whole runs, one after the other.

Needs ``tests/judges/fault.c`` compiled and preloaded: ``run_sweep`` does both. A run is a child of this
process, so that importing costs nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judges.programs import must, program
from reliability.scenarios import SCENARIOS, Hit, emptied

if TYPE_CHECKING:
    from reliability.scenarios import Scenario

HERE = Path(__file__).parents[1]
KILL, SHORT, CUT, WRITTEN = -signal.SIGKILL, 0, -101, -102
SIGNALS = (-signal.SIGINT, -signal.SIGTERM)
WRITING = " write fsync create rename truncate attribute mkdir "
DONE, CHECK, BROKEN, IO, INTERRUPTED, TERMINATED = 0, 1, 3, 5, 130, 143


@dataclass(frozen=True)
class Fault:
    """Which calls fail how; ``sticky``: all from the n-th on. ``codes`` are the exit codes allowed.

    ``litters``: what is temporary may stay, since its removal is refused, too.
    """

    name: str
    calls: str
    number: int
    sticky: bool = False
    codes: tuple[int, ...] = (IO,)
    litters: bool = False


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("disk full", " write create truncate mkdir ", errno.ENOSPC, sticky=True),
        Fault("disk full for a moment", " write create truncate mkdir ", errno.ENOSPC),
        Fault("quota", " write create ", errno.EDQUOT, sticky=True),
        Fault("write error", WRITING, errno.EIO),
        Fault(
            "no permission", " create rename attribute unlink mkdir ", errno.EACCES, sticky=True, litters=True
        ),
        Fault("read-only", " create rename unlink mkdir ", errno.EROFS, sticky=True, litters=True),
        Fault("read error", " read open ", errno.EIO, codes=(IO, CHECK)),
        Fault("interrupted", " write read fsync create open ", errno.EINTR, codes=(DONE,)),
        Fault("short", " write read ", SHORT, sticky=True, codes=(DONE,)),
        Fault("killed", WRITING + "unlink ", KILL, codes=(KILL,), litters=True),
        Fault("Ctrl-C", WRITING + "unlink read ", -signal.SIGINT, codes=(INTERRUPTED,)),
        Fault("SIGTERM", WRITING + "unlink ", -signal.SIGTERM, codes=(TERMINATED,)),
        Fault("input cut", " read write ", CUT),
        Fault("input written to", " read write ", WRITTEN),
    )
}
"""A written file that cannot be read back fails the check of what was written: exit code 1."""


@dataclass
class Sweep:
    """What a sweep did: runs by exit code, and what was wrong."""

    scenario: str
    fault: str
    calls: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def fitting(scenario: Scenario) -> list[Fault]:
    """Return the faults that make sense for a scenario: others change the input only where it is one file."""
    return [fault for fault in FAULTS.values() if scenario.one_file or fault.number not in (CUT, WRITTEN)]


class Disk:
    """The preloaded wrapper."""

    def __init__(self) -> None:
        """Find it in this process; ``victim`` is the file that others change."""
        self.victim: Path | None = None
        self._library = ctypes.CDLL(None)
        self._library.fault_count.restype = ctypes.c_long

    def arm(self, root: Path, fault: Fault, at: int) -> None:
        """Let the ``at``-th call below ``root`` fail; 0 only counts."""
        self._library.fault_arm(
            os.fsencode(root), fault.calls.encode(), ctypes.c_long(at), fault.number, int(fault.sticky),
            os.fsencode(self.victim or ""),
        )  # fmt: skip

    def count(self) -> int:
        """Calls since then."""
        return int(self._library.fault_count())


def child(words: list[str], root: Path, disk: Disk, fault: Fault | None, at: int) -> tuple[int, str, int]:
    """Run the command line in a child; returns exit code (or minus the signal), what it said, and calls."""
    from wheelslim.cli.app import main

    sys.stdout.flush()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        code = 99
        try:
            sys.argv = ["wheelslim", *words]
            signal.signal(signal.SIGINT, signal.default_int_handler)  # A job in the background ignores it.
            if fault is not None:
                disk.arm(root, fault, at)
            main()
            code = 0
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        finally:
            calls = disk.count() if fault is not None else 0
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(1, b"\0%d" % calls)
            os._exit(code)
    os.close(writer)
    said = b""
    while part := os.read(reader, 1 << 16):
        said += part
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    text, _, count = said.decode(errors="replace").partition("\0")
    return os.waitstatus_to_exitcode(status), text, int(count or 0)


def sweep(scenario: Scenario, fault: Fault, root: Path, *, step: int = 1, first: int = 1) -> Sweep:
    """Inject ``fault`` at every ``step``-th call, with a run without faults after each."""
    disk = Disk()
    result = Sweep(scenario.name, fault.name)
    words = scenario.prepare(emptied(root))
    code, said, result.calls = child(words, root, disk, fault, 0)
    expected = scenario.result(root)
    if code != DONE or not expected:
        result.wrong.append(f"without a fault: exit code {code}, {said}")
        return result
    for at in range(first, result.calls + 1, step):
        words = scenario.prepare(emptied(root))
        disk.victim = scenario.artifact(root)
        code, said, _ = child(words, root, disk, fault, at)
        result.codes[code] += 1
        for problem in (
            _said_wrong(fault, code, said),
            scenario.judge(
                root,
                expected,
                Hit(code == DONE, fault.litters, fault.number in SIGNALS, fault.number in (CUT, WRITTEN)),
            ),
        ):
            if problem:
                result.wrong.append(f"call {at}: {problem}")
        if fault.number in (CUT, WRITTEN):
            continue
        code, said, _ = child(scenario.again(root, words), root, disk, None, 0)
        problem = scenario.judge(root, expected, Hit(code == DONE))
        if code != DONE or problem:
            result.wrong.append(f"after call {at}: exit code {code}, {problem}, {said}")
    return result


def _said_wrong(fault: Fault, code: int, said: str) -> str | None:
    harmless = code == DONE and fault.number in (errno.EACCES, errno.EROFS, errno.EIO, errno.ENOSPC, *SIGNALS)
    if code not in fault.codes and not harmless:
        return f"exit code {code}: {said.strip()}"
    if "Traceback" in said or "internal error" in said:
        return said.strip()
    if code in (IO, BROKEN, INTERRUPTED, TERMINATED) and not said.startswith("wheelslim: "):
        return f"no message: {said!r}"
    return None


def run_sweep(scenario: str, fault: str, *, step: int = 1, first: int = 1) -> dict[str, Any]:
    """Compile and preload the wrapper, and sweep in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder) / "fault.so"
        source = str(HERE / "judges" / "fault.c")
        must([program("gcc"), "-O1", "-fPIC", "-shared", source, "-o", str(wrapper), "-ldl"])
        words = [scenario, fault, "--step", str(step), "--first", str(first), "--root", f"{folder}/root"]
        path = os.pathsep.join(map(str, (HERE.parent / "src", HERE)))
        env = {"LD_PRELOAD": str(wrapper), "PYTHONPATH": path, "WHEELSLIM_DEBUG": ""}
        out = must([sys.executable, "-m", "reliability.faults", *words], env=env, timeout=3000)
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
        return answer


def main() -> None:
    """Sweep in this process, which has the wrapper."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--root", type=Path, required=True)
    words = parser.parse_args()
    found = sweep(
        SCENARIOS[words.scenario], FAULTS[words.fault], words.root, step=words.step, first=words.first
    )
    print(json.dumps({**vars(found), "codes": {str(code): n for code, n in sorted(found.codes.items())}}))


if __name__ == "__main__":
    main()
