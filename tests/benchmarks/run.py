"""Measure wheelslim beside what people do today: one table for each suite, as JSON, SVG and Markdown.

    make bench                            # two minutes: a small wheel, containers, start-up; into build/
    make bench BENCH_ARGS=--full          # 20 minutes, 40 GB of disk: docs/performance.{json,svg,md}
    PYTHONPATH=tests python -m benchmarks.run --suites torch,inspect --full --runs 5

Needs the ``dev`` extra and the wheels (``tests/real/fetch.py torch cublas cupy-cuda13x torchvision
cuobjdump``). Ways whose tool is missing (``cuobjdump``, and ``cubloaty`` from PyPI) are left out. The ways of
a suite are run in turn, once to warm up and to watch their scratch space, then ``--runs`` times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import suites
from benchmarks.chart import draw
from benchmarks.child import cost_of
from benchmarks.level6 import size_at_level_6
from benchmarks.machine import describe
from benchmarks.page import render
from benchmarks.scratch import ScratchWatch

if TYPE_CHECKING:
    from benchmarks.child import Cost


def main() -> None:
    """Measure what the command line asks for, and write what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="all suites, at full size")
    parser.add_argument("--suites", help=f"of {','.join(suites.KEYS)}")
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each way")
    parser.add_argument("--scratch", type=Path, help="directory for the work")
    parser.add_argument("--output", type=Path, help="the JSON file; SVG and Markdown go beside it")
    parser.add_argument("--render", action="store_true", help="measure nothing, write the page again")
    options = parser.parse_args()
    directory = suites.REPOSITORY / ("docs" if options.full or options.render else "build")
    output: Path = options.output or directory / "performance.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    data = json.loads(output.read_text()) if output.exists() else {"suites": {}}
    if not options.render:
        keys = options.suites.split(",") if options.suites else suites.KEYS if options.full else suites.QUICK
        for key in keys:
            room = Path(tempfile.mkdtemp(dir=options.scratch))
            try:
                found = measured(suites.suite(key, room, options.full), room, options.runs)
            finally:
                shutil.rmtree(room)
            data["suites"][key] = {**found, "machine": describe()}
            output.write_text(json.dumps(data, indent=2) + "\n")
    output.with_suffix(".svg").write_text(draw(data["suites"]))
    page = output.with_suffix(".md")
    page.write_text(render(data, page.read_text() if page.exists() else ""))
    print(f"{page} is written", file=sys.stderr)


def measured(suite: suites.Suite, directory: Path, runs: int) -> dict[str, Any]:
    """Run the ways of one suite in turn; medians of each."""
    print(f"{suite.title} ({suite.sizes})", file=sys.stderr)
    costs: dict[str, list[Cost]] = {way.name: [] for way in suite.contenders}
    scratch, sizes, level6 = {}, {}, {}
    for number in range(-1, runs):
        for way in suite.contenders:
            room = suites.Room(directory / "run" / "scratch", directory / "run" / "output")
            for path in (room.scratch, room.output):
                path.mkdir(parents=True)
            log = directory / "log"
            os.sync()  # What the run before left to be written is not this one's time.
            if number < 0:
                with ScratchWatch(directory / "run", room.output) as watch:
                    cost_of(way.steps(room), _environment(room), log, watch.follow)
                scratch[way.name] = watch.peak
                sizes[way.name] = sum(path.stat().st_size for path in room.output.iterdir())
                if way.wheel is not None:
                    level6[way.name] = size_at_level_6(way.wheel, next(room.output.iterdir()))
            else:
                cost = cost_of(way.steps(room), _environment(room), log)
                costs[way.name].append(cost)
                print(f"  {way.name}: {cost.wall:.2f} s, CPU {cost.cpu:.2f} s", file=sys.stderr)
            shutil.rmtree(directory / "run")
    return {
        "title": suite.title,
        "sizes": suite.sizes,
        "facts": suite.facts,
        "ways": [
            {
                "name": way.name,
                "shown": way.shown,
                "scale": way.scale,
                "wall": statistics.median(cost.wall for cost in costs[way.name]),
                "cpu": statistics.median(cost.cpu for cost in costs[way.name]),
                "peak": max(cost.peak for cost in costs[way.name]),
                "scratch": scratch[way.name],
                "output": sizes[way.name],
                "output at zlib level 6": level6.get(way.name),
                "walls": sorted(round(cost.wall, 3) for cost in costs[way.name]),
            }
            for way in suite.contenders
        ],
    }


def _environment(room: suites.Room) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(suites.REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path, "TMPDIR": str(room.scratch)}


if __name__ == "__main__":
    main()
