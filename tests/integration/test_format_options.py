"""Options that one format has: refused where nothing of that format is given, for the others otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from builders.conda import CondaPackage, Item
from builders.wheel import Wheel
from corpus.recipes import BY_NAME

CODE = BY_NAME["plain"].path.read_bytes()


def prune(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wheelslim", "prune", "-a", "sm_86", *words]
    environment = {"PYTHONPATH": str(Path("src").resolve()), "PATH": ""}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=directory, check=False, timeout=60
    )


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    Wheel({"demo/libdemo.so": CODE}, name="demo", tag="py3-none-any").write(tmp_path)
    CondaPackage([Item("lib/libdemo.so", CODE)]).write(tmp_path)
    (tmp_path / "libdemo.so").write_bytes(CODE)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--compression-level", "3", "*.whl"),
            "--compression-level is for conda packages, and none is",
        ),
        (("--compression-level", "3", "*.whl"), "  --compression fast, default or max is that of wheels"),
        (("--format", "conda", "*.whl"), "--format is for conda packages"),
        (("--build-suffix", "x", "*.so"), "--build-suffix is for conda packages"),
        (("--compression", "max", "*.conda"), "--compression is for wheels, and none is given"),
        (("--no-build-tag", "*.conda"), "--no-build-tag is for wheels, and none is given"),
        (("--check-input", "*.conda", "*.so"), "--check-input is for wheels"),
        (("--no-build-tag", "*.so"), "--no-build-tag is for wheels"),
    ],
)
def test_an_option_for_a_format_that_is_not_given(inputs: Path, words: tuple[str, ...], says: str) -> None:
    given = [str(path) for word in words for path in (sorted(inputs.glob(word)) if "*" in word else [word])]
    result = prune(inputs, *given)
    assert result.returncode == 2
    assert says in result.stderr.replace("wheelslim: ", "")
    assert not (inputs / "slim").exists()


def test_in_a_mixed_run_each_option_goes_to_its_own(inputs: Path) -> None:
    given = sorted(str(path) for path in inputs.iterdir())
    words = ("--build-suffix", "x", "--compression-level", "1", "--no-build-tag", "--compression", "fast")
    result = prune(inputs, *words, *given)
    assert result.returncode == 0, result.stderr
    names = sorted(path.name for path in (inputs / "slim").iterdir())
    assert len(names) == 3
    assert "demo-1.0-py3-none-any.whl" in names
    assert [name for name in names if name.endswith("_x.conda")]


def test_a_file_that_is_not_there_is_the_greater_fault(inputs: Path) -> None:
    result = prune(inputs, "--build-suffix", "x", "absent.conda")
    assert result.returncode == 5
    assert "absent.conda" in result.stderr
