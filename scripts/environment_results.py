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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "results.md"
DATA = REPOSITORY / "docs" / "environments.json"
BEGIN = "<!-- begin: made by scripts/environment_results.py -->"
END = "<!-- end: made by scripts/environment_results.py -->"
WANTED = ("torch==2.14.1", "numpy")
HOUSE = ("torch", "torchvision")
RUNS = ["sm_86", "sm_80,sm_86", "sm_90", "sm_86 --strip", "sm_86 --strip --embedded"]
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


def temporary(venv: Path, names: Iterable[str]) -> bool:
    """Whether a run has begun to write."""
    return any(next(folder.glob(".wheelslim-*"), None) for folder in {(venv / name).parent for name in names})


def begun(command: list[str], venv: Path, names: Iterable[str]) -> subprocess.Popen[bytes]:
    """Start a run and wait for its first temporary file, or its end: planning comes first."""
    run = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")})
    while run.poll() is None and not temporary(venv, names):
        time.sleep(0.005)
    return run


def killed(template: Path, devices: str) -> dict[str, Any]:
    """Kill runs at random moments, look at every library each time, and let the last one finish."""
    whole = copied(template, "whole")
    planned = json.loads(measured(wheelslim("env", "--arch", devices, "--json", "-n", str(whole))).output)
    names = [library["path"] for library in planned["tree"]["libraries"] if library["containers"]]
    run = begun(wheelslim("env", "--arch", devices, "-q", str(whole)), whole, names)
    start = time.monotonic()
    assert run.wait() == 0
    duration = time.monotonic() - start
    new = {name: sha256(whole / name) for name in names}
    old = {name: sha256(template / name) for name in names}
    stamps = {path.relative_to(whole): sha256(path) for path in whole.rglob("wheelslim.json")}
    chance = random.Random(7)
    row = {"kills": KILLS, "partial": 0, "with_notes": 0, "same": True, "left": 0, "record_faults": 0}
    venv = copied(template, "killed")
    for number in range(KILLS):
        run = begun(wheelslim("env", "--arch", devices, "-q", str(venv)), venv, names)
        time.sleep(chance.uniform(0, duration))
        run.kill()
        run.wait()
        now = {name: sha256(venv / name) for name in names}
        assert all(now[name] in (old[name], new[name]) for name in names), "neither old nor new"
        row["partial"] += any(now[name] != new[name] for name in names) and now != old
        row["with_notes"] += any(venv.rglob(".wheelslim-*.note"))
        if number % 3 and number < KILLS - 1:
            continue  # The next one is killed over what this one left.
        said(wheelslim("env", "--arch", devices, "-q", str(venv)), PYTHONPATH=str(REPOSITORY / "src"))
        row["same"] &= {name: sha256(venv / name) for name in names} == new
        row["same"] &= {
            path.relative_to(venv): sha256(path) for path in venv.rglob("wheelslim.json")
        } == stamps
        row["left"] += len(list(venv.rglob(".wheelslim-*")))
        row["record_faults"] += record_faults(venv)
        shutil.rmtree(venv)
        if number < KILLS - 1:
            venv = copied(template, "killed")
    shutil.rmtree(whole)
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


def wheelhouse(root: Path, devices: str) -> dict[str, Any]:
    """A wheelhouse of PyTorch and torchvision, and what installers make of it without any other index."""
    uv = str(Path(sys.executable).parent / "uv")
    house = root / "wheelhouse"
    build = wheelslim("wheelhouse", "--arch", devices, "--json", "-q", "-o", str(house), *HOUSE)
    first, again = measured(build), measured(build)
    slimmed = json.loads(first.output)["slimmed"]
    report = json.loads(again.output)
    index = ["--require-hashes", "-r", str(house / "requirements.slim.txt")]
    index += ["--index-url", (house / "simple").as_uri()]
    check = "import torch, torchvision; print(torch.__version__, torchvision.__version__)"
    alone = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_NO_CACHE_DIR": "1",
    }
    said([sys.executable, "-m", "venv", str(root / "pip-venv")])
    python = str(root / "pip-venv/bin/python")
    said([python, "-m", "pip", "install", "-q", *index], **alone)
    said([python, "-m", "pip", "check"])
    versions = {said([python, "-c", check])}
    shutil.rmtree(root / "pip-venv")
    alone = {
        "UV_CACHE_DIR": str(root / "uv-cache"),
        "UV_NO_CONFIG": "1",
        "UV_FIND_LINKS": "",
        "UV_OFFLINE": "1",
    }
    alone["UV_EXTRA_INDEX_URL"] = ""
    said([uv, "venv", "-q", "--python", sys.executable, str(root / "uv-venv")], **alone)
    said([uv, "pip", "install", "-q", "--python", str(root / "uv-venv"), *index], **alone)
    said([uv, "pip", "check", "--python", str(root / "uv-venv")], **alone)
    versions.add(said([str(root / "uv-venv/bin/python"), "-c", check]))
    (seen,) = versions
    shutil.rmtree(house)
    return {
        "wheels": len(report["wheels"]),
        "slimmed": len(slimmed),
        "before": round(sum(one["size"]["before"] for one in slimmed) / 2**20),
        "after": round(sum(one["size"]["after"] for one in slimmed) / 2**20),
        "seconds": first.seconds,
        "memory": first.memory,
        "again_seconds": again.seconds,
        "again": len(report["slimmed"]),
        "versions": seen,
    }


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

- **Killed.** {kills[kills]} runs over such environments (sm_86) were killed by SIGKILL at random moments
  of their work, {kills[partial]} of them with some libraries done and others not, {kills[with_notes]} with
  books to finish. Each time every library was whole, old or new. The runs after them finished:
  {same} as after one run in one go, {kills[record_faults]} untrue rows of RECORD,
  {kills[left]} files of ours left.
- **Shared.** In an environment of uv with hard links into its cache ({links[shared]} of
  {links[libraries]} libraries shared), {links[changed]} files changed, the cache {cache},
  `uv pip check` was content, and PyTorch {computed}.
- **Wheelhouse.** `wheelslim wheelhouse --arch sm_86 {house_words}`: {house[wheels]} wheels,
  {house[slimmed]} of them slimmed, these {house[before]:,} → {house[after]:,} MiB,
  {house[seconds]:.0f} seconds with resolution and download, {house[memory]:.0f} MiB of memory.
  A second run slims {house[again]}, in {house[again_seconds]:.0f} seconds. pip (`--require-hashes`) and uv
  install it in environments that reach no other index; both import {house[versions]}.

{machine}, {cores} cores, {system}, Python {python}; measured {date} by
`scripts/environment_results.py`."""


def page(data: dict[str, Any]) -> str:
    """The section's text."""
    rows, kills, links = data["rows"], data["kills"], data["links"]
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
        house=data["wheelhouse"],
        house_words=" ".join(HOUSE),
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
    parser.add_argument("--runs", nargs="*", default=RUNS)
    parser.add_argument("--parts", nargs="*", default=["rows", "kills", "links", "wheelhouse"])
    arguments = parser.parse_args()
    root = arguments.scratch / "environments"
    root.mkdir(parents=True)
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    try:
        if {"rows", "kills"} & set(arguments.parts):
            template = install(root)
        if "rows" in arguments.parts:
            runs = [run.partition(" ") for run in arguments.runs]
            data["rows"] = [plain_runs(template, devices, *words.split()) for devices, _, words in runs]
        if "kills" in arguments.parts:
            data["kills"] = killed(template, "sm_86")
        if "links" in arguments.parts:
            data["links"] = hard_links(root, "sm_86")
        if "wheelhouse" in arguments.parts:
            data["wheelhouse"] = wheelhouse(root, "sm_86")
    finally:
        shutil.rmtree(root, ignore_errors=True)
        DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    section = f"{BEGIN}\n\n{page(data)}\n\n{END}\n"
    if BEGIN in text:
        text = re.sub(
            re.escape(BEGIN) + ".*?" + re.escape(END) + "\n", lambda _: section, text, flags=re.DOTALL
        )
    else:
        text = text.replace("## What has not run", f"{section}\n## What has not run")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
