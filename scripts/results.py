"""Prune the real wheels, let the judges look, and write the tables of docs/results.md.

    python scripts/results.py            # everything: about 40 minutes, 12 GB of disk below --scratch
    python scripts/results.py --wheels torchvision,nccl --no-headline
    python scripts/results.py --render   # the page again from docs/results.json

Needs the ``dev`` extra, the wheels (``tests/real/fetch.py all``) and the environments to import them in
(``tests/real/environments.py small torch torch-2.1``); what is missing shows as a dash. Rows that were not
measured again are kept, each with its date.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY / "tests"), str(HERE)]

import pytest  # noqa: E402
from results_page import render  # noqa: E402

from judges import cuobjdump as cuobjdump_judge  # noqa: E402
from real import verdicts  # noqa: E402
from real.cases import ARCHES, KEYS  # noqa: E402
from real.fetch import find  # noqa: E402
from real.pruned import Pruned, measured, prune, wheelslim  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

CACHE = Path(os.environ.get("WHEELSLIM_TEST_CACHE", "~/.cache/wheelslim/wheels")).expanduser()
DATA = REPOSITORY / "docs" / "results.json"
PAGE = REPOSITORY / "docs" / "results.md"
HEADLINE = ("torch", "sm_80,sm_86", "torch/lib/libtorch_cuda.so")
REPEATS = 5


def main() -> None:
    """Measure what the command line asks for, and write the data and the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--wheels", help="keys of tests/real/fetch.py, comma-separated", default=",".join(KEYS)
    )
    parser.add_argument("--no-headline", action="store_true", help="leave the headline as it is")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--scratch", type=Path, help="directory for the work")
    options = parser.parse_args()
    data: dict[str, Any] = json.loads(DATA.read_text()) if DATA.exists() else {"rows": {}}
    if not options.render:
        data["machine"] = machine()
        keys = [key for key in options.wheels.split(",") if key]
        for key in keys:
            for arch in ARCHES:
                row = measure(key, arch, options.scratch)
                if row is not None:
                    data["rows"][f"{key} {arch}"] = row
                    print(f"{key} {arch}: {row}", file=sys.stderr)
                    DATA.write_text(json.dumps(data, indent=1) + "\n")
        if not options.no_headline:
            data["headline"] = headline(options.scratch)
        order = [f"{key} {arch}" for key in KEYS for arch in ARCHES]
        data["rows"] = {name: data["rows"][name] for name in order if name in data["rows"]}
        DATA.write_text(json.dumps(data, indent=1) + "\n")
    PAGE.write_text(render(data, PAGE.read_text() if PAGE.exists() else ""))


def measure(key: str, arch: str, scratch: Path | None) -> dict[str, Any] | None:
    """Prune one wheel and ask every judge; None where the wheel is not in the cache."""
    original = find(key, CACHE)
    if original is None:
        print(f"{key} is not in {CACHE}", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory(prefix="results-", dir=scratch) as directory:
        read_once(original)
        pruned = prune(key, arch, original, Path(directory))
        judged = {name: verdict(judge, pruned) for name, judge in judges().items()}
        return {
            "wheel": original.name,
            "date": today(),
            "file": pruned.report["size"],
            "installed": pruned.report["installed_size"],
            "seconds": pruned.run.seconds,
            "peak": pruned.run.peak,
            "libraries": sum(library["method"] != "unchanged" for library in pruned.report["libraries"]),
            "methods": sorted({library["method"] for library in pruned.report["libraries"]} - {"unchanged"}),
            "coverage": pruned.report["coverage"],
            "judges": judged,
        }


def judges() -> dict[str, Callable[[Pruned], str]]:
    """Every judge by the title of its column."""
    found = dict(verdicts.JUDGES)
    cuobjdump, older = cuobjdump_judge.find(CACHE), cuobjdump_judge.find_older(CACHE)
    if cuobjdump is not None:
        found["cuobjdump"] = lambda pruned: verdicts.by_cuobjdump(pruned, cuobjdump, older)
    found["same bytes again"] = same_again
    found["nothing left"] = nothing_left
    return found


def verdict(judge: Callable[[Pruned], str], pruned: Pruned) -> str:
    """What a judge says: its words, why it was not asked, or FAILED with the reason."""
    try:
        return judge(pruned)
    except pytest.skip.Exception as skipped:
        return f"not asked: {skipped}"
    except AssertionError as error:
        return f"FAILED: {str(error)[:2000]}"


def same_again(pruned: Pruned) -> str:
    """A second run, on one thread, gives the same bytes."""
    with tempfile.TemporaryDirectory(dir=pruned.scratch) as directory:
        again = prune(pruned.key, pruned.arch, pruned.original, Path(directory), "--jobs", "1")
        assert subprocess.run(["cmp", str(again.wheel), str(pruned.wheel)], check=False).returncode == 0
    return "yes"


def nothing_left(pruned: Pruned) -> str:
    """Pruning the result finds nothing to do."""
    with tempfile.TemporaryDirectory(dir=pruned.scratch) as directory:
        run = wheelslim(Path(directory), "prune", "-a", pruned.arch, "-o", directory, str(pruned.wheel))
    assert run.exit_code == 0, run.stderr
    assert "nothing to prune" in run.stdout
    return "yes"


def headline(scratch: Path | None) -> dict[str, Any] | None:
    """The main case: median of five runs, beside ``wheel unpack`` and ``wheel pack`` of the same wheel."""
    key, arch, library = HEADLINE
    original = find(key, CACHE)
    if original is None:
        return None
    read_once(original)
    runs, sizes, files = [], {}, {}
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(prefix="results-", dir=scratch) as directory:
            pruned = prune(key, arch, original, Path(directory))
            runs.append(pruned.run)
            files = pruned.report["size"]
            sizes = next(one["size"] for one in pruned.report["libraries"] if one["path"] == library)
    print("headline:", [run.seconds for run in runs], file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="results-", dir=scratch) as directory:
        wheel = [sys.executable, "-m", "wheel"]
        there = Path(directory)
        unpack = measured([*wheel, "unpack", "--dest", str(there / "tree"), str(original)], there)
        (tree,) = (there / "tree").iterdir()
        pack = measured([*wheel, "pack", "--dest-dir", str(there), str(tree)], there)
        assert unpack.exit_code == pack.exit_code == 0, unpack.stderr + pack.stderr
    return {
        "date": today(),
        "wheel": original.name,
        "arch": arch,
        "library": {"path": library, **sizes},
        "file": files,
        "seconds": [run.seconds for run in runs],
        "median": statistics.median(run.seconds for run in runs),
        "peak": max(run.peak for run in runs),
        "unpack": unpack.seconds,
        "pack": pack.seconds,
        "unpack_pack_peak": max(unpack.peak, pack.peak),
        "load": os.getloadavg(),
    }


def machine() -> dict[str, str]:
    """What it was measured on, without the machine's name."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    words = {
        "machine": f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }
    for name, command in {
        "pip": [sys.executable, "-m", "pip", "--version"],
        "uv": [shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv", "--version"],
        "wheel": [sys.executable, "-m", "wheel", "version"],
        "readelf": ["readelf", "--version"],
        "unzip": ["unzip", "-v"],
    }.items():
        words[name] = version(command)
    cuobjdump = find("cuobjdump", CACHE)
    words["cuobjdump"] = cuobjdump.name.split("-")[1] if cuobjdump else "-"
    return words


def version(command: list[str]) -> str:
    """First version number that a program prints."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return "-"
    found = re.search(r"\d+\.\d+(\.\d+)*", said)
    return found[0] if found else "-"


def read_once(path: Path) -> None:
    """Bring a file into the page cache, so that the disk is not measured."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def today() -> str:
    """The date, UTC."""
    return datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()


if __name__ == "__main__":
    main()
