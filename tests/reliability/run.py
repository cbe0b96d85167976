"""Inject every fault at every call of every scenario, and write the counts: half an hour.

PYTHONPATH=src:tests python -m reliability.run
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from reliability.faults import FAULTS, fitting, run_sweep
from reliability.scenarios import SCENARIOS

BEGIN = "<!-- begin: made by tests/reliability/run.py -->"
END = "<!-- end: made by tests/reliability/run.py -->"


def main() -> int:
    """Run; exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/reliability.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/reliability.md"))
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--render", action="store_true", help="inject nothing, write the table again")
    words = parser.parse_args()
    sweeps: list[dict[str, Any]] = []
    if words.render:
        sweeps = json.loads(words.output.read_text())["faults"]
    else:
        for scenario in SCENARIOS.values():
            for fault in fitting(scenario):
                step = words.step if "read" in fault.calls.split() else 1
                sweeps.append({**run_sweep(scenario.name, fault.name, step=step), "step": step})
                print(json.dumps(sweeps[-1]), file=sys.stderr, flush=True)
        lines = ",\n ".join(json.dumps(sweep) for sweep in sweeps)
        words.output.write_text(f'{{"faults": [\n {lines}\n]}}\n', encoding="utf-8")
    page = words.page.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    words.page.write_text(f"{before}{BEGIN}\n\n{table(sweeps)}\n{END}{after}", encoding="utf-8")
    return int(any(sweep["wrong"] for sweep in sweeps))


def table(sweeps: list[dict[str, Any]]) -> str:
    """A row for each fault: what was hit how often, how the runs ended, what was wrong."""
    lines = ["| fault | injected | exit codes | wrong |", "|---|---:|---|---:|"]
    every: Counter[str] = Counter()
    for fault in FAULTS.values():
        mine = [sweep for sweep in sweeps if sweep["fault"] == fault.name]
        codes: Counter[str] = Counter()
        for sweep in mine:
            codes.update(sweep["codes"])
        every.update(codes)
        lines.append(_row(fault.name, codes, sum(len(sweep["wrong"]) for sweep in mine)))
    lines.append(_row("**all**", every, sum(len(sweep["wrong"]) for sweep in sweeps)))
    return "\n".join(lines) + "\n"


def _row(name: str, codes: Counter[str], wrong: int) -> str:
    told = ", ".join(
        f"{code}: {count:,}" for code, count in sorted(codes.items(), key=lambda one: int(one[0]))
    )
    return f"| {name} | {codes.total():,} | {told} | {wrong} |"


if __name__ == "__main__":
    sys.exit(main())
