"""What reaches the terminal: escaped names, any encoding, pipes without color."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corpus.recipes import BY_NAME

SOURCES = str(Path(__file__).parents[2] / "src")


def wheelslim(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "wheelslim", *map(str, words)],
        capture_output=True, env={**os.environ, "PYTHONPATH": SOURCES, **environment}, check=False,
    )  # fmt: skip


def test_names_in_errors_cannot_steer_the_terminal(tmp_path: Path) -> None:
    for words in (("inspect",), ("check", "-a", "sm_86"), ("explain", "-a", "sm_86")):
        done = wheelslim(*words, tmp_path / "evil\x1b[31m.so")
        assert done.returncode == 5
        assert b"\x1b" not in done.stderr
        assert b"evil\\x1b[31m.so" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_will_do(encoding: str) -> None:
    for words in (("inspect",), ("check", "-a", "sm_86"), ("explain", "-a", "sm_86")):
        done = wheelslim(*words, BY_NAME["rdc"].path, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
        assert done.returncode == 0, done.stderr
        assert "rdc.so" in done.stdout.decode(encoding)


def test_a_pipe_gets_no_color_and_whole_lines() -> None:
    done = wheelslim("inspect", BY_NAME["rdc"].path, COLUMNS="20", FORCE_COLOR="1")
    assert b"\x1b" not in done.stdout
    assert b"sm_80 sm_86 sm_90 compute_120 sm_120" in done.stdout


def test_a_closed_pipe_is_no_traceback() -> None:
    command = (
        f"{sys.executable} -m wheelslim inspect --by container -v {BY_NAME['many_containers'].path} | head -1"
    )
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, env={**os.environ, "PYTHONPATH": SOURCES}, check=False
    )
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(("streams", "code"), [(">&-", 0), ("2>&-", 0), (">&- 2>&-", 0), ("| sleep 0", 141)])
def test_streams_that_nobody_reads(streams: str, code: int) -> None:
    command = (
        f"{sys.executable} -m wheelslim inspect {BY_NAME['rdc'].path} {streams}; exit ${{PIPESTATUS[0]}}"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (code, b"")


def test_what_to_do_about_an_error_stands_on_lines_of_its_own() -> None:
    done = wheelslim("check", "-a", "sm_85", BY_NAME["rdc"].path)
    assert done.returncode == 2
    first, *advice = done.stderr.decode().splitlines()
    assert first == "wheelslim: unknown target 'sm_85'"
    assert advice[0] == "  Did you mean sm_80 or sm_86?"
    assert all(line.startswith("  ") for line in advice)


def on_a_terminal(width: int, *words: str) -> tuple[int, list[str]]:
    """Run the command on a terminal of ``width`` columns; its exit code and what it wrote."""
    code = (
        f"import os, pty, sys; os.environ['COLUMNS'] = '{width}'; "
        "sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, '-m', 'wheelslim', *sys.argv[1:]])))"
    )
    command = [sys.executable, "-c", code, *words]
    environment = {**os.environ, "PYTHONPATH": SOURCES, "NO_COLOR": "1"}
    done = subprocess.run(
        command, capture_output=True, stdin=subprocess.DEVNULL, env=environment, check=False, timeout=60
    )
    return done.returncode, done.stdout.decode().splitlines()


def test_an_error_fits_the_terminal(tmp_path: Path) -> None:
    code, lines = on_a_terminal(60, "check", "-a", "sm_85", str(tmp_path))
    assert code == 2
    assert "TORCH_CUDA_ARCH_LIST" in " ".join(lines)
    assert all(len(line) <= 60 for line in lines)


def test_sentences_of_a_report_are_broken_between_words() -> None:
    code, lines = on_a_terminal(60, "prune", "-n", "-a", "sm_86", str(BY_NAME["rdc"].path))
    assert code == 0
    assert "  targets cannot run what is left" in "\n".join(lines)
    assert all(len(line) <= 60 for line in lines[1:])
