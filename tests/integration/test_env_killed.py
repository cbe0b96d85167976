"""Runs that are killed at every point where something becomes lasting, and the rerun that finishes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from builders.environment_trees import MANY, PLAIN, environment, facts, slim, temporaries
from builders.installed import conda_faults, conda_record, install, record_faults
from wheelslim.environment.note import Note
from wheelslim.errors import ExitCode
from wheelslim.rewriter import ChangedMember

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY = "torch/lib/libmany.so"
TWIN = "twin/lib/libtwin.so"

# Runs over argv[1] and dies, as by SIGKILL, just before (argv[3] = "fsync") or after ("flush") step argv[2].
DIES = """
import os, sys
from pathlib import Path
from builders.environment_trees import slim
import wheelslim.environment.note as note
import wheelslim.environment.replacement as replacement

left = int(sys.argv[2])

def counted(function):
    def step(*arguments):
        global left
        if left == 0:
            os.kill(os.getpid(), 9)
        left -= 1
        return function(*arguments)
    return step

if sys.argv[3] == "fsync":
    os.fsync = counted(os.fsync)
else:
    note.flush_directory = replacement.flush_directory = counted(replacement.flush_directory)
slim(Path(sys.argv[1]), jobs=1)
"""
KILLED = -9


def tree(root: Path) -> Path:
    """An environment in a conda prefix, with a library of two names."""
    site = environment(root)
    install(site, "twin", {TWIN: MANY})
    (site / TWIN).unlink()
    os.link(site / LIBRARY, site / TWIN)
    paths = [path.relative_to(root).as_posix() for path in sorted(site.rglob("*")) if path.is_file()]
    conda_record(root, "everything", paths)
    return site


def stamps(site: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in site.glob("*.dist-info/wheelslim.json")}


def killed_trees(tmp_path: Path, kind: str) -> Iterator[tuple[Path, Path]]:
    """The tree after death at each step, until a run lives to its end."""
    path = os.pathsep.join(str(Path(place).resolve()) for place in ("src", "tests"))
    for step in range(100):
        root = tmp_path / str(step)
        site = tree(root)
        done = subprocess.run(
            [sys.executable, "-c", DIES, str(root), str(step), kind],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != KILLED:
            assert done.returncode == 0, done.stderr
            assert step > 10
            return
        yield root, site
    pytest.fail("the run never ends")


def wait_for_work(run: subprocess.Popen[bytes], root: Path) -> None:
    """Wait for the first temporary file, or the end: what comes before changes nothing."""
    while run.poll() is None and not temporaries(root):
        time.sleep(0.002)


@pytest.mark.slow
def test_after_sigkill_at_random_moments_libraries_are_whole_and_a_rerun_finishes(tmp_path: Path) -> None:
    """Thirty kills at times spread over a run on a tree of 16 libraries; no step is picked by the test."""
    wheelslim = [sys.executable, "-c", "from wheelslim.cli.app import main; main()", "env", "-q", "-asm_86"]
    env = {**os.environ, "PYTHONPATH": str(Path("src").resolve())}
    pristine = tmp_path / "pristine"
    for number in range(8):
        install(pristine, f"one-{number}", {f"one{number}/lib.so": MANY, f"one{number}/more.so": PLAIN})
    shutil.copytree(pristine, tmp_path / "whole")
    run = subprocess.Popen([*wheelslim, str(tmp_path / "whole")], env=env)
    wait_for_work(run, tmp_path / "whole")
    start = time.monotonic()
    assert run.wait() == 0
    duration = time.monotonic() - start
    new = {name: one.content for name, one in facts(tmp_path / "whole").items()}
    old = {name: one.content for name, one in facts(pristine).items()}
    random = Random(5)
    partial = 0
    for number in range(30):
        root = tmp_path / str(number)
        shutil.copytree(pristine, root)
        run = subprocess.Popen([*wheelslim, str(root)], env=env)
        wait_for_work(run, root)
        time.sleep(random.uniform(0, duration))
        run.kill()
        run.wait()
        now = {name: one.content for name, one in facts(root).items() if name.endswith(".so")}
        assert all(content in (old[name], new[name]) for name, content in now.items())
        partial += 0 < sum(content == new[name] for name, content in now.items()) < len(now)
        assert slim(root).exit_code == ExitCode.DONE
        assert {name: one.content for name, one in facts(root).items()} == new
        assert record_faults(root) == []
        assert temporaries(root) == []
        shutil.rmtree(root)
    assert partial > 3  # Else the kills came before or after the work.


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fsync", "flush"])
def test_after_death_at_any_step_libraries_are_whole_and_a_rerun_finishes(tmp_path: Path, kind: str) -> None:
    expected = tree(tmp_path / "whole")
    slim(tmp_path / "whole")
    new = {name: (expected / name).read_bytes() for name in (LIBRARY, TWIN, "nvidia/blas/lib/libblas.so.13")}
    old = {LIBRARY: MANY, TWIN: MANY, "nvidia/blas/lib/libblas.so.13": PLAIN}
    half_done = 0
    for root, site in killed_trees(tmp_path, kind):
        for name, content in new.items():
            assert (site / name).read_bytes() in (old[name], content)
        half_done += bool(record_faults(site))
        report = slim(root)
        assert report.exit_code == ExitCode.DONE
        for name, content in new.items():
            assert (site / name).read_bytes() == content
        assert (site / TWIN).stat().st_ino == (site / LIBRARY).stat().st_ino
        assert record_faults(site) == []
        assert conda_faults(root) == []
        assert stamps(site) == stamps(expected)
        assert temporaries(root) == []
        before = facts(root)
        slim(root)
        assert facts(root) == before
    assert half_done  # Else the kills never hit between a library and its books.


def test_a_note_of_a_run_that_never_used_it_goes(tmp_path: Path) -> None:
    site = environment(tmp_path)
    library = site / LIBRARY
    change = ChangedMember(LIBRARY, len(MANY), 17, "0" * 64, "1" * 64)
    Note.write(library, (), change, {"libraries": {}, "dropped_members": []})
    report = slim(tmp_path)
    assert report.finished == ()
    assert len(report.changed) == 2
    assert record_faults(site) == []
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"schema": "wheelslim/note/1", "name": 1}'])
def test_a_torn_note_counts_as_none(tmp_path: Path, text: bytes) -> None:
    site = environment(tmp_path)
    (site / "torch/lib/.wheelslim-0123.note").write_bytes(text)
    assert len(slim(tmp_path).changed) == 2
    assert temporaries(tmp_path) == []


def test_a_note_cannot_lead_out_of_its_tree(tmp_path: Path) -> None:
    outside = tmp_path / "outside.so"
    outside.write_bytes(MANY)
    site = environment(tmp_path / "env")
    library = site / LIBRARY
    slim(tmp_path / "env")
    content = library.read_bytes()

    change = ChangedMember(
        LIBRARY,
        len(MANY),
        len(content),
        hashlib.sha256(MANY).hexdigest(),
        hashlib.sha256(content).hexdigest(),
    )
    Note.write(library, (outside,), change, {"libraries": {}, "dropped_members": []})
    report = slim(tmp_path / "env")
    assert report.finished == ("lib/python3.11/site-packages/" + LIBRARY,)
    assert outside.read_bytes() == MANY


def test_a_dry_run_leaves_notes_to_a_real_one(tmp_path: Path) -> None:
    site = environment(tmp_path)
    Note.write(site / LIBRARY, (), ChangedMember("x", 1, 2, "0", "1"), {})
    before = facts(tmp_path)
    report = slim(tmp_path, dry_run=True)
    assert facts(tmp_path) == before
    assert any("stopped in the middle" in notice for notice in report.prune.notices)
