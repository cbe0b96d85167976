"""A real wheel pruned by the command line in a child process, with what it cost."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judges import installers

SOURCES = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Run:
    """A finished child process; ``peak`` is its largest resident size in bytes."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    peak: int


LAUNCHER = """
import json, os, sys, time
start = time.perf_counter()
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
found = time.perf_counter() - start, os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
open(sys.argv[1], "w").write(json.dumps(found))
"""
"""A child's peak includes what its parent held when it was started, so the parent is a small one."""


def measured(command: list[str], scratch: Path) -> Run:
    """Run a command by its full path; its output goes through files in ``scratch``."""
    out, err, cost = scratch / "stdout", scratch / "stderr", scratch / "cost"
    path = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH", "")]))
    with out.open("wb") as stdout, err.open("wb") as stderr:
        launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(cost), *command]
        environment = {**os.environ, "PYTHONPATH": path}
        subprocess.run(launch, stdout=stdout, stderr=stderr, env=environment, check=True)
    seconds, exit_code, peak = json.loads(cost.read_text())
    return Run(exit_code, out.read_text(), err.read_text(), seconds, peak)


def wheelslim(scratch: Path, *arguments: str) -> Run:
    """Run ``wheelslim`` from this checkout."""
    return measured([sys.executable, "-m", "wheelslim", *arguments], scratch)


@dataclass
class Pruned:
    """A wheel before and after; ``report`` is what ``--json`` said, ``scratch`` is for the judges."""

    key: str
    arch: str
    original: Path
    wheel: Path
    run: Run
    report: dict[str, Any]
    scratch: Path
    _unpacked: dict[Path, Path] = field(default_factory=dict)

    @property
    def devices(self) -> list[int]:
        """``sm_80,sm_86`` → 80, 86."""
        return [int(word.removeprefix("sm_")) for word in self.arch.split(",")]

    @property
    def changed(self) -> list[str]:
        """Members of both wheels whose CRC differs, but for the books: what zipfile sees of the pruning."""
        before, after = members(self.original), members(self.wheel)
        return [
            name
            for name, info in before.items()
            if name in after and after[name].CRC != info.CRC and ".dist-info/" not in name
        ]

    def unpacked(self, wheel: Path) -> Path:
        """The tree that ``wheel unpack`` makes of one of the two wheels; it checks RECORD."""
        if wheel not in self._unpacked:
            target = self.scratch / f"unpacked-{len(self._unpacked)}"
            self._unpacked[wheel] = installers.wheel_unpack(wheel, target)
        return self._unpacked[wheel]

    def original_library(self, name: str) -> Path:
        """A member of the original, taken out by zipfile."""
        path = self.scratch / "original" / name
        if not path.exists():
            with zipfile.ZipFile(self.original) as archive:
                archive.extract(name, self.scratch / "original")
        return path


def prune(key: str, arch: str, original: Path, scratch: Path, *options: str) -> Pruned:
    """Prune into ``scratch/slim`` and read the report; fails unless a wheel came out."""
    output = scratch / "slim"
    run = wheelslim(scratch, "prune", "-a", arch, "-o", str(output), "--json", *options, str(original))
    assert run.exit_code == 0, run.stderr
    assert run.stderr == ""
    (report,) = json.loads(run.stdout)["artifacts"]
    assert report["output"], f"nothing was written: {report['notices']}"
    return Pruned(key, arch, original, Path(report["output"]), run, report, scratch)


def members(wheel: Path) -> dict[str, zipfile.ZipInfo]:
    """The members by name, in the order of the directory."""
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info for info in archive.infolist()}


def dist_info(wheel: Path, name: str) -> str:
    """Text of a file in the wheel's .dist-info."""
    with zipfile.ZipFile(wheel) as archive:
        path = next(path for path in archive.namelist() if path.endswith(f".dist-info/{name}"))
        return archive.read(path).decode()


def installed_size(wheel: Path) -> int:
    """Bytes of all members, inflated, as RECORD and the directory agree on them."""
    rows = list(csv.reader(io.StringIO(dist_info(wheel, "RECORD"))))
    listed = {row[0]: int(row[2]) for row in rows if row[2]}
    found = {name: info.file_size for name, info in members(wheel).items() if not info.is_dir()}
    assert all(found[name] == size for name, size in listed.items())
    return sum(found.values())
