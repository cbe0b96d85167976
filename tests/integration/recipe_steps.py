"""The shell steps of recipes, read from Dockerfiles and workflows, and a place to run them in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from builders.environment_trees import MANY, PLAIN
from builders.wheel import Member, Wheel

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = Path(__file__).parents[2] / "src"

# What pip and uv make the first line of is their business; the rest runs this repository's code.
PROGRAM = """#!python
import sys
sys.path[:0] = {paths!r}
from wheelslim.cli.app import main
main()
"""


@dataclass(frozen=True)
class Step:
    """One instruction of a Dockerfile: its word, and the rest with continuation lines joined."""

    word: str
    rest: str


def dockerfile_steps(path: Path) -> list[Step]:
    """Read a Dockerfile of the plain kind: comments, continuation lines, no heredocs."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    steps = []
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            steps.append(Step(word.upper(), rest.strip()))
    return steps


def without_flags(rest: str) -> str:
    """The command of a RUN without its ``--mount`` flags."""
    words = rest.split()
    while words and words[0].startswith("--"):
        words.pop(0)
    return " ".join(words)


def workflow_steps(path: Path) -> list[str]:
    """The ``run: |`` blocks of a workflow, in order."""
    blocks: list[str] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if line.strip() != "run: |":
            continue
        indent = len(line) - len(line.lstrip()) + 2
        block = []
        for inner in lines[number + 1 :]:
            if inner.strip() and len(inner) - len(inner.lstrip()) < indent:
                break
            block.append(inner[indent:])
        blocks.append("\n".join(block))
    return blocks


@dataclass(frozen=True)
class Workplace:
    """A plain directory in the place of an image: what it calls ``/opt`` lies below ``root``."""

    root: Path
    environment: Mapping[str, str]

    def run(self, script: str, cwd: Path | None = None, **more: str) -> str:
        """Run a step with bash, which has to succeed; returns what it printed."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace("/opt/", f"{self.root}/opt/")],
            env={**self.environment, **more}, cwd=cwd or self.root,
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def build(self, dockerfile: Path) -> None:
        """Carry out the ARG, ENV, COPY and RUN instructions of a Dockerfile."""
        values: dict[str, str] = {}
        for step in dockerfile_steps(dockerfile):
            if step.word in ("ARG", "ENV"):
                for name, equals, value in (word.partition("=") for word in step.rest.split()):
                    if equals:
                        values[name] = value
            elif step.word == "COPY" and "--from" not in step.rest:
                *names, target = step.rest.replace("/opt/", f"{self.root}/opt/").split()
                for name in names:
                    directory = Path(target) if target.endswith("/") else Path(target).parent
                    directory.mkdir(parents=True, exist_ok=True)
                    shutil.copy(dockerfile.parent / name, target)
            elif step.word == "RUN":
                self.run(without_flags(step.rest), None, **values)


def workplace(root: Path) -> Workplace:
    """Make a directory with wheels that stand for the real ones, and no way to any index."""
    wheels, programs = root / "wheels", root / "programs"
    wheels.mkdir(parents=True)
    programs.mkdir()
    library = Member(MANY, mode=0o755)
    for wheel in (
        Wheel(
            {"torch/__init__.py": b"", "torch/lib/libtorch_cuda.so": library},
            "torch",
            "2.14.1",
            "py3-none-any",
        ),
        Wheel(
            {"xgboost/__init__.py": b"", "xgboost/lib/libxgboost.so": PLAIN},
            "xgboost",
            "3.2.0",
            "py3-none-any",
        ),
        Wheel({"numpy/__init__.py": b"", "numpy/tests/test_core.py": b""}, "numpy", "2.4.6", "py3-none-any"),
        Wheel({"scipy/__init__.py": b""}, "scipy", "1.17.1", "py3-none-any"),
        own_wheel(),
    ):
        wheel.write(wheels)
    program(programs / "python", f'exec "{sys.executable}" "$@"')
    program(programs / "python3", f'exec "{sys.executable}" "$@"')
    program(programs / "wheelslim", f'PYTHONPATH="{SOURCE}" exec "{sys.executable}" -m wheelslim "$@"')
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    environment = {
        **kept,
        "PATH": path,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_CACHE_DIR": "1",
        "UV_CACHE_DIR": str(root / "uv-cache"),
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(wheels),
        "UV_PYTHON": sys.executable,
    }
    return Workplace(root, environment)


def own_wheel() -> Wheel:
    """A wheel called wheelslim whose program runs the code of this repository, with its libraries."""
    paths = [str(SOURCE), sysconfig.get_path("purelib")]
    script = Member(PROGRAM.format(paths=paths).encode(), mode=0o755)
    return Wheel({"wheelslim-0.1.0.data/scripts/wheelslim": script}, "wheelslim", "0.1.0", "py3-none-any")


def program(path: Path, line: str) -> None:
    """Write a program of one line of shell."""
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)
