"""The examples of the manual: every command and line of Python runs and says what stands there."""

from __future__ import annotations

import doctest
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DEMO = next((ROOT / "examples" / "demo").glob("*.whl"))

WITH_COMMANDS = ("inspect.md", "json.md")
WITH_PYTHON = ("api.md",)


@pytest.fixture(autouse=True)
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copyfile(DEMO, tmp_path / "demo.whl")
    monkeypatch.chdir(tmp_path)


def commands(page: str) -> list[tuple[str, str]]:
    """Each command (``    $ …``) of a page with the lines that follow it in its block."""
    found: list[tuple[str, list[str]]] = []
    inside = False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
            inside = True
        elif inside and (line.startswith("    ") or not line):
            found[-1][1].append(line[4:])
        else:
            inside = False
    return [(command, "\n".join(lines).strip("\n")) for command, lines in found]


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_print_what_the_page_says(page: str) -> None:
    examples = commands(page)
    assert examples
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    for command, expected in examples:
        program, *words = shlex.split(command)
        assert program == "wheelslim"
        done = subprocess.run(
            [sys.executable, "-m", "wheelslim", *words],
            capture_output=True, encoding="utf-8", env=environment, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout.strip("\n") == expected, command


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_says_what_the_page_says(page: str) -> None:
    failures, tests = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert tests > 10
    assert failures == 0


def test_the_list_of_options_is_that_of_the_commands() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "cli_options.py"))
    made = script["page_with"](script["option_list"]())
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == made, "run scripts/cli_options.py"


def rows(page: Path) -> list[list[str]]:
    lines = page.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def test_the_figures_of_the_readme_are_those_of_the_results() -> None:
    measured = {(row[0], row[1]): row for row in rows(DOCS / "results.md") if len(row) == 10}
    shown = [row for row in rows(ROOT / "README.md") if "→" in row[2]]
    assert len(shown) >= 6
    for name, targets, file, installed, seconds in shown:
        row = measured[name, targets]
        exact = [float(row[column].replace(",", "")) for column in (2, 3, 5, 6)]
        rounded = [float(word.replace(",", "")) for cell in (file, installed) for word in cell.split(" → ")]
        assert [abs(one - other) <= 0.5 for one, other in zip(exact, rounded, strict=True)] == [True] * 4
        assert seconds == row[8]
    environments = {(row[0], row[1]): row for row in rows(DOCS / "results.md") if len(row) == 9}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    plain, lean = environments["sm_86", "none"], environments["sm_86", "--strip --embedded"]
    assert f"goes from {plain[2]} to {plain[3]} MiB" in text
    assert f"`--strip --embedded` to {lean[3]}" in text


def test_every_schema_is_named_and_every_named_schema_is_there() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    named = set(re.findall(r"schema/([a-z-]+-\d+\.json)", text))
    assert named == {path.name for path in (DOCS / "schema").glob("*.json")}
