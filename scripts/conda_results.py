"""Time ``wheelslim prune`` on a large conda package beside ``cph extract`` and ``cph create``.

    python scripts/conda_results.py                  # torch: about 40 minutes, 6 GB of disk below --scratch
    python scripts/conda_results.py --only .tar.bz2  # the rows of the other format are kept
    python scripts/conda_results.py --wheel nccl --print

The package is made by ``cph create`` from the content of a real wheel. The table goes into docs/results.md.
Needs the ``dev`` extra and the wheel (``tests/real/fetch.py torch``).
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY / "tests"), str(HERE)]

from builders.conda_tree import add_info  # noqa: E402
from real.fetch import find  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CACHE = Path(os.environ.get("WHEELSLIM_TEST_CACHE", "~/.cache/wheelslim/wheels")).expanduser()
PAGE = REPOSITORY / "docs" / "results.md"
BEGIN = "<!-- begin: made by scripts/conda_results.py -->"
END = "<!-- end: made by scripts/conda_results.py -->"
STEM = "demo-1.0-h0_0"
KINDS = (".conda", ".tar.bz2")
MIB = 1 << 20


@dataclass(frozen=True)
class Row:
    """One command: ``cpu`` and ``wall`` in seconds, ``peak`` and ``size`` in bytes."""

    what: str
    wall: float
    cpu: float
    peak: int
    size: int | None

    def __str__(self) -> str:
        """Write it as a row of the table."""
        size = "-" if self.size is None else f"{self.size / MIB:,.0f}"
        return f"| {self.what} | {size} | {self.wall:,.0f} | {self.cpu:,.0f} | {self.peak / MIB:,.0f} |"


def main() -> None:
    """Measure, and write or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheel", default="torch", help="a key of tests/real/fetch.py")
    parser.add_argument("--arch", default="sm_86")
    parser.add_argument("--only", choices=KINDS, help="measure one format")
    parser.add_argument("--scratch", type=Path, help="directory for the work")
    parser.add_argument("--print", action="store_true", help="leave docs/results.md alone")
    options = parser.parse_args()
    wheel = find(options.wheel, CACHE)
    if wheel is None:
        raise SystemExit(f"{options.wheel} is not in {CACHE}: python tests/real/fetch.py {options.wheel}")
    scratch = Path(tempfile.mkdtemp(dir=options.scratch))
    try:
        rows = measure(wheel, options.arch, scratch, [options.only] if options.only else KINDS)
    finally:
        shutil.rmtree(scratch)
    page = PAGE.read_text() if PAGE.exists() else "# Results\n"
    lines = {row.what: str(row) for row in rows}
    text = table(wheel, options.arch, (known_rows(page) if options.only else {}) | lines)
    if options.print:
        print(text)
    else:
        PAGE.write_text(placed(text, page))


def measure(wheel: Path, arch: str, scratch: Path, kinds: Sequence[str]) -> list[Row]:
    """Pack with cph, unpack, and slim."""
    tree = scratch / "tree"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree / "lib/python3.11/site-packages")
    add_info(tree, "demo")
    cph = [sys.executable, "-W", "ignore", "-m", "conda_package_handling.cli"]
    slim = [sys.executable, "-m", "wheelslim", "prune", "--quiet", "--force", "--arch", arch]
    slim += ["--output-dir", str(scratch / "slim")]
    rows = []
    for kind in kinds:
        package = scratch / f"{STEM}{kind}"
        output = scratch / "slim" / package.name
        pack = [*cph, "create", str(tree), package.name, "--out-folder", str(scratch)]
        rows += [
            run(f"`cph c` ({kind})", pack, package),
            run(f"`cph x` ({kind})", [*cph, "extract", str(package), "--dest", str(scratch / "x")], None),
            run(f"`wheelslim prune` ({kind})", [*slim, str(package)], output),
        ]
        shutil.rmtree(scratch / "x")
        if kind == ".conda":
            quick = [*slim, "--compression-level", "3", str(package)]
            rows.append(run("`wheelslim prune --compression-level 3`", quick, output))
        else:
            converted = [*slim, "--format", "conda", "--compression-level", "3", str(package)]
            what = "`wheelslim prune --format conda --compression-level 3` (.tar.bz2)"
            rows.append(run(what, converted, scratch / "slim" / f"{STEM}.conda"))
    return rows


def run(what: str, command: list[str], output: Path | None) -> Row:
    """Run one command that has to succeed."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]))
    start = time.perf_counter()
    child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {child.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    row = Row(what, wall, cpu, usage.ru_maxrss * 1024, None if output is None else output.stat().st_size)
    print(row, file=sys.stderr)
    return row


def known_rows(page: str) -> dict[str, str]:
    """Return the rows that the page has, by their first cell."""
    made = page.partition(BEGIN)[2].partition(END)[0]
    rows = [line for line in made.splitlines() if line.startswith("| `")]
    return {row.split("|")[1].strip(): row for row in rows}


def table(wheel: Path, arch: str, rows: Mapping[str, str]) -> str:
    """Return the section of the page."""
    with zipfile.ZipFile(wheel) as archive:
        content = sum(info.file_size for info in archive.infolist())
    name = wheel.name.partition("-cp")[0]
    lines = [
        "## Conda packages",
        "",
        f"The content of `{name}` ({content / MIB:,.0f} MiB), packed by `cph create`,"
        f" slimmed for {arch} with verification. zstd level 19 unless said otherwise; cph uses one thread.",
        "",
        "| command | output, MiB | wall s | CPU s | peak memory, MiB |",
        "|---|---:|---:|---:|---:|",
        *rows.values(),
        "",
        f"{len(os.sched_getaffinity(0))} CPUs, shared with other work; compare rows of one format only."
        f" Measured {datetime.datetime.now(tz=datetime.timezone.utc).date()}.",
    ]
    return "\n".join(lines)


def placed(text: str, page: str) -> str:
    """Return the page with the section replaced, or added at the end."""
    made = f"{BEGIN}\n\n{text}\n\n{END}"
    if BEGIN not in page:
        return f"{page.rstrip()}\n\n{made}\n"
    before, _, rest = page.partition(BEGIN)
    return before + made + rest.partition(END)[2]


if __name__ == "__main__":
    main()
