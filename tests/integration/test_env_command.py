"""``wheelslim env`` as people run it, and what pip and uv say of the environment afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.environment_trees import MANY, PLAIN, environment, facts, temporaries
from builders.installed import install, record_faults
from builders.wheel import Member, Wheel
from judges.programs import must, program
from judges.schemas import assert_valid
from wheelslim.environment.default import default_root

if TYPE_CHECKING:
    from judges.loader import Loader

SOURCE = str(Path("src").resolve())


def wheelslim(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment_ = {**os.environ, "PYTHONPATH": SOURCE, **(env or {})}
    return subprocess.run(
        [sys.executable, "-m", "wheelslim", *map(str, words)],
        capture_output=True, text=True, env=environment_, check=False, timeout=120,
    )  # fmt: skip


def wheels(directory: Path) -> list[Path]:
    """Two wheels with device code, one of which needs the other."""
    directory.mkdir()
    demo = Wheel(
        {"demo/__init__.py": b"", "demo/libdemo.so": Member(MANY, mode=0o755)},
        name="demo",
        metadata="Requires-Dist: demo-blas\n",
    )
    blas = Wheel({"demo_blas/__init__.py": b"", "demo_blas/lib/libblas.so.1": PLAIN}, name="demo-blas")
    return [demo.write(directory), blas.write(directory)]


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if not path.is_dir() and "__pycache__" not in path.parts}


def test_json_is_valid_and_tells_of_both_runs(tmp_path: Path) -> None:
    environment(tmp_path)
    first = json.loads(wheelslim("env", "-a", "sm_86", tmp_path, "--json").stdout)
    assert_valid(first)
    assert_valid(first["tree"])
    assert len(first["changed"]) == 2
    assert first["packages"] == ["nvidia_blas-1.0", "torch-1.0"]
    second = json.loads(wheelslim("env", "-a", "sm_86", tmp_path, "--json").stdout)
    assert_valid(second)
    assert (second["changed"], second["packages"]) == ([], [])


def test_text_names_what_was_done(tmp_path: Path) -> None:
    environment(tmp_path)
    done = wheelslim("env", "-a", "sm_86", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 files changed" in done.stdout
    assert "books of 2 packages brought up to date: nvidia_blas-1.0, torch-1.0" in done.stdout
    assert done.stderr == ""


def test_what_is_passed_over_is_named_on_stderr_with_exit_5(tmp_path: Path) -> None:
    site = environment(tmp_path)
    (site / "torch/lib").chmod(0o555)
    done = wheelslim("env", "-a", "sm_86", tmp_path)
    (site / "torch/lib").chmod(0o755)
    assert done.returncode == 5
    assert "libmany.so" in done.stderr
    assert "read-only" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_long_list_of_what_is_passed_over_is_cut_unless_asked_for(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"dir{number}").mkdir()
        (tmp_path / f"dir{number}/lib.so").write_bytes(PLAIN)
        (tmp_path / f"dir{number}").chmod(0o555)
    few = wheelslim("env", "-a", "sm_86", tmp_path)
    every = wheelslim("env", "-a", "sm_86", tmp_path, "-v")
    for number in range(30):
        (tmp_path / f"dir{number}").chmod(0o755)
    assert few.stderr.count("read-only") == 20
    assert "passed over 10 more (-v lists them)" in few.stderr
    assert every.stderr.count("read-only") == 30


def test_exit_4_before_anything_changes(tmp_path: Path) -> None:
    environment(tmp_path)
    before = facts(tmp_path)
    done = wheelslim("env", "-a", "sm_70", tmp_path)
    assert done.returncode == 4
    assert "sm_70" in done.stderr
    assert facts(tmp_path) == before


def test_a_page_shows_the_tree(tmp_path: Path) -> None:
    environment(tmp_path / "env")
    page = tmp_path / "page.html"
    assert wheelslim("env", "-a", "sm_86", "-n", "--html", page, tmp_path / "env").returncode == 0
    assert "libmany.so" in page.read_text(encoding="utf-8")


def test_nothing_is_written_outside_the_tree(tmp_path: Path) -> None:
    """TMPDIR may lie on another file system, or be full: it is not used."""
    environment(tmp_path / "env")
    done = wheelslim("env", "-a", "sm_86", tmp_path / "env", env={"TMPDIR": str(tmp_path / "missing")})
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"env"}


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no tmpfs at /dev/shm")
def test_a_tree_may_lie_on_another_file_system_than_temporary_files(tmp_path: Path) -> None:
    root = Path("/dev/shm") / f"wheelslim-test-{os.getpid()}"
    try:
        site = environment(root)
        assert root.stat().st_dev != tmp_path.stat().st_dev
        done = wheelslim("env", "-a", "sm_86", root, env={"TMPDIR": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        assert record_faults(site) == []
        assert (site / "torch/lib/libmany.so").stat().st_size < len(MANY)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def test_stopping_with_ctrl_c_says_so_and_leaves_whole_libraries(tmp_path: Path) -> None:
    for number in range(200):
        install(tmp_path, f"one-{number}", {f"one{number}/lib.so": MANY})
    run = subprocess.Popen(
        [sys.executable, "-m", "wheelslim", "env", "-a", "sm_86", "-j1", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": SOURCE},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # Jobs in the background ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    while run.poll() is None and not temporaries(tmp_path):
        time.sleep(0.002)
    run.send_signal(signal.SIGINT)
    _, message = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "run again to finish" in message
    assert "Traceback" not in message
    assert record_faults(tmp_path) == []
    assert temporaries(tmp_path) == []


def test_slimmed_libraries_load_and_hand_over_what_the_target_runs(tmp_path: Path, loader: Loader) -> None:
    site = environment(tmp_path)
    library = site / "torch/lib/libmany.so"
    before = loader.load(library).registered
    assert wheelslim("env", "-a", "sm_86", tmp_path).returncode == 0
    after = loader.load(library).registered
    assert after
    for old, new in zip(before, after, strict=True):
        assert {entry.sm for entry in new.entries} <= {86}
        assert set(new.entries) <= set(old.entries)


def test_pip_checks_and_uninstalls_the_environment(tmp_path: Path) -> None:
    """In a real environment: ``pip check`` is content, and ``pip uninstall`` leaves nothing behind."""
    must([sys.executable, "-m", "venv", str(tmp_path / "venv")])
    python = str(tmp_path / "venv/bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    before = files(tmp_path / "venv")
    must([*pip, "install", "-q", "--no-index", "--no-compile", *map(str, wheels(tmp_path / "wheels"))])
    done = wheelslim("env", "-a", "sm_86", tmp_path / "venv")
    assert done.returncode == 0, done.stderr
    assert "2 files changed" in done.stdout
    assert "No broken requirements" in must([*pip, "check"])
    must([*pip, "uninstall", "-y", "-q", "demo", "demo-blas"])
    assert files(tmp_path / "venv") == before


@pytest.mark.parametrize("mode", ["hardlink", "copy", "symlink"])
def test_the_cache_of_uv_is_never_touched(tmp_path: Path, mode: str) -> None:
    uv = program("uv")
    env = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_NO_CONFIG": "1", "UV_OFFLINE": "1"}
    venv = tmp_path / "venv"
    must([uv, "venv", "-q", "--python", sys.executable, str(venv)], env=env)
    given = [str(wheel) for wheel in wheels(tmp_path / "wheels")]
    install_ = [uv, "pip", "install", "-q", "--no-index", "--link-mode", mode, "--python", str(venv)]
    must([*install_, *given], env=env)
    (library,) = venv.rglob("libdemo.so")
    cached = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.so*")}
    assert MANY in cached.values()
    if mode == "hardlink":
        assert library.stat().st_nlink > 1
    done = wheelslim("env", "-a", "sm_86", venv)
    assert done.returncode == 0, done.stderr
    assert {path: path.read_bytes() for path in cached} == cached
    if mode == "symlink":
        assert "symbolic links to libraries outside" in done.stdout
        assert library.is_symlink()
        return
    assert library.stat().st_size < len(MANY)
    assert library.stat().st_nlink == 1
    assert record_faults(venv) == []
    must([uv, "pip", "check", "--python", str(venv)], env=env)
    again = tmp_path / "again"
    must([uv, "venv", "-q", "--python", sys.executable, str(again)], env=env)
    must([*install_[:-1], str(again), *given], env=env)
    assert next(again.rglob("libdemo.so")).read_bytes() == MANY
    must([uv, "pip", "uninstall", "-q", "--python", str(venv), "demo", "demo-blas"], env=env)
    assert not [path for path in venv.rglob("*demo*") if not path.is_dir()]


def test_the_default_is_the_environment_that_runs_it() -> None:
    root = default_root()
    if sys.prefix != sys.base_prefix:
        assert root == Path(sys.prefix)
    assert root.is_dir()
    assert root != Path("/usr")


@pytest.mark.parametrize("killed", [False, True], ids=["whole", "killed before"])
def test_a_distribution_inside_another_is_files_to_it(tmp_path: Path, killed: bool) -> None:
    """As in setuptools/_vendor: the outer RECORD has a row for the inner one's, which must stay true.

    Also after an earlier run that was killed between the two.
    """
    inner = "vendor/_vendor/inner-1.0.dist-info"
    record = "inner.py,,\ninner.pyi,,\ninner-1.0.dist-info/RECORD,,\n"
    site = tmp_path / "site-packages"
    site.mkdir()
    vendor = {
        "vendor/__init__.py": b"",
        "vendor/stubs/only.pyi": b"x: int\n",
        "vendor/_vendor/inner.py": b"",
        "vendor/_vendor/inner.pyi": b"y: int\n",
        f"{inner}/RECORD": record.encode(),
        f"{inner}/METADATA": b"Metadata-Version: 2.1\nName: inner\nVersion: 1.0\n",
        "vendor/libvendor.so": MANY,
    }
    install(site, "vendor", vendor)
    shutil.copytree(tmp_path / "site-packages", tmp_path / "before")
    if killed:
        (site / inner / "RECORD").write_text(record.replace("inner.pyi,,\n", ""))
    done = wheelslim("env", "-a", "sm_86", site, "--drop", "pyi")
    assert done.returncode == 0, done.stderr
    assert "books of 2 packages brought up to date: inner-1.0, vendor-1.0" in done.stdout
    assert not (site / "vendor/_vendor/inner.pyi").exists()
    assert (site / inner / "RECORD").read_text() == record.replace("inner.pyi,,\n", "")
    assert record_faults(site) == []
    proved = wheelslim("verify", tmp_path / "before", site)
    assert proved.returncode == 0, proved.stdout


def test_an_empty_path_is_not_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(tmp_path)
    before = facts(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = wheelslim("env", "-a", "sm_86", "")
    assert result.returncode == 2
    assert "the path is empty" in result.stderr
    assert facts(tmp_path) == before
