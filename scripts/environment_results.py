"""Slim fresh environments with PyTorch, and write the section "Environments" of docs/results.md.

    python scripts/environment_results.py --scratch /big/disk     # 20 minutes, 25 GB, network by pip and uv

Needs the ``dev`` extra. pip and uv take the wheels from wherever they are configured to.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "results.md"
BEGIN = "<!-- begin: made by scripts/environment_results.py -->"
END = "<!-- end: made by scripts/environment_results.py -->"
WANTED = ("torch==2.14.1", "numpy")
REPEATS = 3
KILLS = 30
COMPUTE = (
    "import torch; torch.manual_seed(0); a = torch.randn(400, 400, dtype=torch.float64); "
    "x = torch.linalg.solve(a, a @ torch.ones(400, 1, dtype=torch.float64)); "
    "print(torch.__version__, bool(torch.allclose(x, torch.ones_like(x))))"
)


@dataclass(frozen=True)
class Run:
    """One run of a command: seconds, peak memory in MiB, and what it printed."""

    seconds: float
    memory: float
    output: str


def measured(command: list[str]) -> Run:
    """Run a command that has to succeed."""
    read, write = os.pipe()
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=write, env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")})
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        output = pipe.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return Run(time.monotonic() - start, usage.ru_maxrss / 1024, output)


def said(command: list[str], **environment: str) -> str:
    """What a command that has to succeed prints."""
    environment = {**os.environ, **environment}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def wheelslim(*words: str) -> list[str]:
    """The command, run by this Python."""
    return [sys.executable, "-m", "wheelslim", *words]


def disk(root: Path) -> int:
    """What ``du`` says, in MiB."""
    return round(int(said(["du", "-sk", str(root)]).split()[0]) / 1024)


def sha256(path: Path) -> str:
    """Hash a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def record_faults(root: Path) -> int:
    """Rows of RECORD that are not true of the files, counted by code that is not ours."""
    import base64

    faults = 0
    for record in root.glob("lib/python*/site-packages/*.dist-info/RECORD"):
        base = record.parent.parent
        with record.open(encoding="utf-8", newline="") as file:
            for path, digest, _ in csv.reader(file):
                if digest:
                    expected = base64.urlsafe_b64decode(digest.partition("=")[2] + "=").hex()
                    faults += not (base / path).exists() or expected != sha256(base / path)
    return faults


def install(root: Path) -> Path:
    """A fresh environment as pip makes it; returns the template that runs are copied from."""
    venv = root / "template"
    said([sys.executable, "-m", "venv", str(venv)])
    said([str(venv / "bin/python"), "-m", "pip", "install", "--no-cache-dir", *WANTED])
    return venv


def copied(template: Path, name: str) -> Path:
    """A copy beside the template."""
    target = template.with_name(name)
    said(["cp", "-a", str(template), str(target)])
    return target


def plain_runs(template: Path, devices: str, *words: str) -> dict[str, Any]:
    """Slim copies of the template; the facts of the last one, and medians."""
    before = disk(template)
    runs = []
    for number in range(REPEATS):
        venv = copied(template, f"run-{number}")
        said(["sync"])
        runs.append(measured(wheelslim("env", "--arch", devices, "--json", *words, str(venv))))
        if number < REPEATS - 1:
            shutil.rmtree(venv)
    again = measured(wheelslim("env", "--arch", devices, "--json", *words, str(venv)))
    python = [str(venv / "bin/python")]
    row = {
        "devices": devices,
        "options": " ".join(words),
        "before": before,
        "after": disk(venv),
        "seconds": statistics.median(run.seconds for run in runs),
        "memory": max(run.memory for run in runs),
        "changed": len(json.loads(runs[-1].output)["changed"]),
        "second": len(json.loads(again.output)["changed"]),
        "second_seconds": again.seconds,
        "computes": said([*python, "-c", COMPUTE]).endswith("True"),
        "pip_check": said([*python, "-m", "pip", "check"]),
        "record_faults": record_faults(venv),
    }
    said([*python, "-m", "pip", "uninstall", "-y", "torch"])
    site = next((venv / "lib").glob("python*/site-packages"))
    left = [
        path for path in site.rglob("*") if path.relative_to(site).parts[0].startswith(("torch", "functorch"))
    ]
    row["left"] = len([path for path in left if not path.is_dir()])
    shutil.rmtree(venv)
    return row


def killed(template: Path, devices: str) -> dict[str, Any]:
    """Kill runs over one tree again and again, look at every library each time, and let one finish."""
    whole = copied(template, "whole")
    report = json.loads(measured(wheelslim("env", "--arch", devices, "--json", str(whole))).output)
    new = {name: sha256(whole / name) for name in report["changed"]}
    old = {name: sha256(template / name) for name in report["changed"]}
    stamps = {path.relative_to(whole): sha256(path) for path in whole.rglob("wheelslim.json")}
    shutil.rmtree(whole)
    venv = copied(template, "killed")
    chance = random.Random(7)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    finished_books = partial = 0
    for _ in range(KILLS):
        run = subprocess.Popen(wheelslim("env", "--arch", devices, "-q", str(venv)), env=environment)
        # Planning everything comes first; temporary files say that it is over.
        while run.poll() is None and not any(venv.rglob(".wheelslim-*.tmp")):
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.7))
        run.kill()
        run.wait()
        now = {name: sha256(venv / name) for name in new}
        assert all(now[name] in (old[name], new[name]) for name in new), "a library is neither old nor new"
        partial += 0 < sum(now[name] == new[name] for name in new) < len(new)
        finished_books += bool(list(venv.rglob(".wheelslim-*.note")))
    said(wheelslim("env", "--arch", devices, "-q", str(venv)), PYTHONPATH=str(REPOSITORY / "src"))
    row = {
        "kills": KILLS,
        "partial": partial,
        "with_notes": finished_books,
        "same": {name: sha256(venv / name) for name in new} == new
        and {path.relative_to(venv): sha256(path) for path in venv.rglob("wheelslim.json")} == stamps,
        "left": len(list(venv.rglob(".wheelslim-*"))),
        "record_faults": record_faults(venv),
    }
    shutil.rmtree(venv)
    return row


def hard_links(root: Path, devices: str) -> dict[str, Any]:
    """An environment that shares its files with the cache of uv."""
    uv = str(Path(sys.executable).parent / "uv")
    cache, venv = root / "uv-cache", root / "uv-venv"
    environment = {"UV_CACHE_DIR": str(cache)}
    said([uv, "venv", "-q", "--python", sys.executable, str(venv)], **environment)
    words = ["pip", "install", "-q", "--link-mode", "hardlink", "--python", str(venv), *WANTED]
    said([uv, *words], **environment)
    cached = {path: sha256(path) for path in cache.rglob("*.so*") if path.is_file() and not path.is_symlink()}
    shared = sum(path.stat().st_nlink > 1 for path in cached)
    report = json.loads(measured(wheelslim("env", "--arch", devices, "--json", str(venv))).output)
    row = {
        "libraries": len(cached),
        "shared": shared,
        "changed": len(report["changed"]),
        "cache_same": all(sha256(path) == digest for path, digest in cached.items()),
        "uv_check": said([uv, "pip", "check", "-q", "--python", str(venv)], **environment) == "",
        "computes": said([str(venv / "bin/python"), "-c", COMPUTE]).endswith("True"),
    }
    shutil.rmtree(cache)
    shutil.rmtree(venv)
    return row


HEAD = """## Environments

`pip install {wanted}` into a fresh environment, then `wheelslim env --arch …`. MiB by
`du -s`; median seconds of {repeats} runs with proof and fsync, on copies whose files were in the page cache;
peak memory in MiB.

| for | options | before | after | freed | files | seconds | memory | second run |
|---|---|---:|---:|---:|---:|---:|---:|---|"""

AFTERWARDS = """
Afterwards, in each of them: PyTorch is imported and solves a system of equations on the CPU ({computes}),
`pip check` says "{pip_check}", {faults} rows of RECORD are untrue, and
`pip uninstall -y torch` leaves {left} files of PyTorch behind.

- **Killed.** {kills[kills]} runs over one such environment (sm_86) were killed by SIGKILL at random moments,
  {kills[partial]} of them with some libraries done and others not, {kills[with_notes]} between a library and
  its books. Each time every library was whole, old or new. The run after them finished: {same}
  as after one run in one go, {kills[record_faults]} untrue rows of RECORD, {kills[left]} files of ours left.
- **Shared.** In an environment of uv with hard links into its cache ({links[shared]} of
  {links[libraries]} libraries shared), {links[changed]} files changed, the cache {cache},
  `uv pip check` was content, and PyTorch {computed}.

{machine}, {cores} cores, {system}, Python {python}; measured {date} by
`scripts/environment_results.py`."""


def page(rows: list[dict[str, Any]], kills: dict[str, Any], links: dict[str, Any]) -> str:
    """The section's text."""
    lines = [HEAD.format(wanted=" ".join(WANTED), repeats=REPEATS)]
    for row in rows:
        cells = (
            row["devices"],
            row["options"] or "none",
            f"{row['before']:,}",
            f"{row['after']:,}",
            f"{row['before'] - row['after']:,}",
            row["changed"],
            f"{row['seconds']:.1f}",
            f"{row['memory']:.0f}",
            f"{row['second']} files, {row['second_seconds']:.1f} s",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    text = AFTERWARDS.format(
        computes="all right" if all(row["computes"] for row in rows) else "WRONG",
        pip_check=", ".join(sorted({row["pip_check"] for row in rows})),
        faults=sum(row["record_faults"] for row in rows),
        left=sum(row["left"] for row in rows),
        kills=kills,
        links=links,
        same="the same libraries and stamps" if kills["same"] else "OTHER FILES",
        cache="kept every byte" if links["cache_same"] else "CHANGED",
        computed="computed" if links["computes"] else "FAILED",
        machine=platform.machine(),
        cores=os.cpu_count(),
        system=platform.system(),
        python=platform.python_version(),
        date=time.strftime("%Y-%m-%d"),
    )
    return "\n".join([*lines, text])


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--runs", nargs="*", default=["sm_86", "sm_80,sm_86", "sm_90"])
    arguments = parser.parse_args()
    root = arguments.scratch / "environments"
    root.mkdir(parents=True)
    try:
        template = install(root)
        rows = []
        for run in arguments.runs:
            devices, *words = run.split()
            rows.append(plain_runs(template, devices, *words))
            print(json.dumps(rows[-1]))
        kills = killed(template, "sm_86")
        print(json.dumps(kills))
        shutil.rmtree(template)
        links = hard_links(root, "sm_86")
        print(json.dumps(links))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    text = PAGE.read_text(encoding="utf-8")
    section = f"{BEGIN}\n\n{page(rows, kills, links)}\n\n{END}\n"
    if BEGIN in text:
        text = re.sub(
            re.escape(BEGIN) + ".*?" + re.escape(END) + "\n", lambda _: section, text, flags=re.DOTALL
        )
    else:
        text = text.replace("## What has not run", f"{section}\n## What has not run")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
