"""Compare installed PyTorch with a pruned copy of itself on this machine's GPU.

    python tests/gpu/compare.py                        # the Python that runs this has PyTorch
    python tests/gpu/compare.py --python venv/bin/python --embedded
    python tests/gpu/compare.py --cpu-rehearsal        # no GPU: everything up to the calls to the device

The copy is made of hard links, pruned for this GPU, and deleted afterwards; the installed packages are not
touched. Every operation of tests/gpu runs on both, in child processes; results have to agree to the bit
wherever two runs of the original do. Exit 0: all agree. 1: something differs. 2: no GPU or no PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent)]

from gpu import fixtures  # noqa: E402
from gpu.prune_copy import prune_copy  # noqa: E402
from gpu.side import Side, child  # noqa: E402

SMOKE = ("matmul_float32", "cublaslt_float16", "cudnn_conv2d_float32", "fft_float32", "solve_float32", "sort")
"""What runs under CUDA_MODULE_LOADING=EAGER, too, where every container is loaded at the start."""

PROBE = """
import json, pathlib, torch
there = torch.cuda.is_available()
print(json.dumps({
    "site": str(pathlib.Path(torch.__file__).parents[1]), "torch": torch.__version__, "gpu": there,
    "capability": list(torch.cuda.get_device_capability()) if there else None,
    "name": torch.cuda.get_device_name() if there else None,
}))
"""


class NotHereError(Exception):
    """This machine has no GPU, or its Python no PyTorch."""


@dataclass
class Report:
    """All that was seen."""

    about: dict[str, Any]
    arch: str
    rehearsal: bool
    copies: dict[str, dict[str, Any]] = field(default_factory=dict)
    operations: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    fixtures: list[dict[str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="the Python whose PyTorch is compared")
    parser.add_argument("--arch", help="targets; by default this GPU (sm_86 in a rehearsal)")
    parser.add_argument("--embedded", action="store_true", help="a second copy, with --embedded")
    parser.add_argument("--cpu-rehearsal", action="store_true", help="no GPU: compute on the CPU, small")
    parser.add_argument("--only", nargs="*", default=[""], help="operations that start so")
    parser.add_argument("--scratch", type=Path, help="on the file system of the packages, for hard links")
    parser.add_argument("--json", type=Path, help="write the report there, too")
    options = parser.parse_args()
    try:
        report = compare(options)
    except NotHereError as reason:
        print(f"not run: {reason}", file=sys.stderr)
        return 2
    print(text(report))
    if options.json:
        options.json.write_text(json.dumps(asdict(report), indent=1) + "\n")
    return 1 if report.faults else 0


def compare(options: argparse.Namespace) -> Report:
    """Prune the copies, run both sides, judge.

    Raises:
        NotHereError: there is nothing to run on.
    """
    about = probe(options.python)
    if not about["gpu"] and not options.cpu_rehearsal:
        raise NotHereError("PyTorch sees no GPU (--cpu-rehearsal runs without one)")
    major, minor = about["capability"] or (8, 6)
    report = Report(about, options.arch or f"sm_{major}{minor}", options.cpu_rehearsal)
    site = Path(about["site"])
    scratch = Path(tempfile.mkdtemp(prefix="wheelslim-gpu-", dir=options.scratch or writable(site)))
    try:
        variants = {"pruned": False, "embedded": True} if options.embedded else {"pruned": False}
        sides: dict[str, Side] = {
            "original": Side(options.python, options.cpu_rehearsal, scratch / "original"),
            "again": Side(options.python, options.cpu_rehearsal, scratch / "again"),
        }
        for name, embedded in variants.items():
            copy = prune_copy(site, scratch / name / "site", report.arch, embedded=embedded)
            report.copies[name] = {"saved": copy.saved, "pruned": copy.pruned, "left": copy.left}
            sides[name] = Side(options.python, options.cpu_rehearsal, scratch / name, copy)
        for side in sides.values():
            side.run("LAZY", options.only)
            side.run("EAGER", [name for name in SMOKE if name.startswith(tuple(options.only))])
        for name in variants:
            for loading in fixtures.LOADING:
                found = judge(
                    options.python, *(sides[one].results(loading) for one in ("original", "again", name))
                )
                report.operations[f"{name}, {loading}"] = found
                report.faults += [
                    f"{name}, {loading}: {operation}: {one['why']}"
                    for operation, one in found.items()
                    if one["verdict"] == "different"
                ]
            if not report.operations[f"{name}, LAZY"]:
                report.faults.append(f"{name}: no operation ran")
            report.faults += sides[name].misplaced(site)
        check_fixtures(options, report, site, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return report


def probe(python: str) -> dict[str, Any]:
    """Ask the child's Python for its PyTorch and GPU."""
    done = child([python, "-c", PROBE], {})
    if done.returncode != 0:
        raise NotHereError(f"{python} cannot import PyTorch: {done.stderr.strip()[-200:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def writable(site: Path) -> str | None:
    """A directory on the file system of the packages, or None for the usual place (real copies then)."""
    return str(site.parent) if os.access(site.parent, os.W_OK) else None


def judge(python: str, original: Path, again: Path, pruned: Path) -> dict[str, dict[str, str]]:
    """Let the child's PyTorch compare the results."""
    done = child([python, "-m", "gpu.difference", str(original), str(again), str(pruned)], {})
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def check_fixtures(options: argparse.Namespace, report: Report, site: Path, scratch: Path) -> None:
    """Run the corpus, where a CUDA 13 runtime is at hand."""
    places = [site / "nvidia/cu13/lib", Path("/usr/local/cuda/lib64"), Path("/usr/lib/x86_64-linux-gnu")]
    cudart = next(
        (place / "libcudart.so.13" for place in places if (place / "libcudart.so.13").exists()), None
    )
    if cudart is None:
        report.fixtures.append(asdict(fixtures.Finding("all", "", "not run", "no libcudart.so.13 found")))
        return
    directory = scratch / "fixtures"
    directory.mkdir()
    for finding in fixtures.check(options.python, cudart, report.arch, directory):
        report.fixtures.append(asdict(finding))
        if finding.verdict == "different":
            report.faults.append(f"fixture {finding.library}, {finding.loading}: {finding.detail}")


def text(report: Report) -> str:
    """The report for people."""
    where = "on the CPU (a rehearsal: no device code has run)" if report.rehearsal else report.about["name"]
    lines = [f"PyTorch {report.about['torch']}, {where}, pruned for {report.arch}"]
    for name, copy in report.copies.items():
        lines.append(f"{name}: {len(copy['pruned'])} libraries, {copy['saved'] / 2**20:,.0f} MiB less")
    for side, operations in report.operations.items():
        counts: dict[str, int] = {}
        for one in operations.values():
            counts[one["verdict"]] = counts.get(one["verdict"], 0) + 1
        lines.append(
            f"{side}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        )
        lines += [f"  not run: {n}: {o['why']}" for n, o in operations.items() if o["verdict"] == "not run"]
    lines += [f"fixture {f['library']} {f['loading']}: {f['verdict']} {f['detail']}" for f in report.fixtures]
    lines += [f"FAULT {fault}" for fault in report.faults]
    lines.append("everything agrees" if not report.faults else f"{len(report.faults)} faults")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
