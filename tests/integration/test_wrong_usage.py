"""What people get wrong: one message, the exit code of docs/cli.md, nothing on standard output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMO = next((ROOT / "examples" / "demo").glob("*.whl"))


def wheelslim(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PIP_NO_INDEX": "1"}
    return subprocess.run(
        [sys.executable, "-m", "wheelslim", *words],
        capture_output=True, text=True, env=environment, cwd=directory, check=False, timeout=60,
    )  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Path:
    shutil.copyfile(DEMO, tmp_path / "demo.whl")
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no code\n")
    (tmp_path / "zero.whl").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("prune -a sm_86 absent.whl", 5, "absent.whl: no such file or directory"),
        ("prune -a sm_86 empty", 2, "empty: this is a directory"),
        ("prune -a sm_86 text", 3, "text: this is no wheel, conda package, library or device code"),
        ("prune -a sm_86 zero.whl", 3, "zero.whl: this is no zip file"),
        ("prune -a sm_86 -o text demo.whl", 5, "this is a file, where a directory has to be"),
        ("prune -a sm_70 demo.whl", 4, "demo.whl: no device code in it runs on sm_70"),
        ("prune -a sm_86 --drop nosuch demo.whl", 2, "unknown file group (expected headers,"),
        ("prune -a sm_86 --profile nosuch demo.whl", 2, "unknown profile"),
        ("prune -a sm_86 --kernels-used text demo.whl", 2, "text: the profile cannot be read"),
        ("prune demo.whl", 2, "Missing option '--arch'"),
        ("prune -a sm_86", 2, "Missing argument"),
        ("check -a sm_86 empty", 1, "no library with device code was found, so nothing was checked"),
        ("check -a sm_86 text", 3, "text: neither a wheel"),
        ("check -a compute_86 demo.whl", 2, "no target is a device"),
        ("inspect absent", 5, "absent: no such file or directory"),
        ("inspect --by foo demo.whl", 2, "'foo' is not one of 'library', 'arch'"),
        ("explain -a sm_86 text", 2, "text: no library with device code was found"),
        ("explain -a sm_86 --library nope demo.whl", 2, "no library with device code matches 'nope'"),
        ("explain -a sm_86 --container 99 demo.whl", 2, "no container matches"),
        ("explain -a sm_86 --wrapper zz demo.whl", 2, "no address such as 0x4fe010"),
        ("verify demo.whl demo.whl", 2, "Name them with --arch"),
        ("verify -a sm_86 demo.whl text", 1, "the two are unrelated (expected a wheel, found a file)"),
        ("env -a sm_86 demo.whl", 2, "wheelslim prune slims files"),
        ("env -a sm_86 absent", 5, "absent: no such file or directory"),
        ("env -a sm_86 -p nosuch empty", 2, "no package here is called nosuch (found no package at all)"),
        ("wheelhouse -a sm_86 -- --help", 2, "--help is no requirement"),
        ("wheelhouse -a sm_86", 2, "give requirements"),
        ("wheelhouse -a sm_86 -r absent.txt", 5, "absent.txt: no such file or directory"),
    ],
)
def test_one_message_and_an_exit_code(here: Path, words: str, code: int, says: str) -> None:
    before = {path.name for path in here.rglob("*")}
    result = wheelslim(here, *words.split())
    assert result.returncode == code, result.stderr
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr
    assert result.stderr.count("wheelslim: ") + result.stderr.count("Error: ") == 1
    assert {path.name for path in here.rglob("*")} - before <= {"slim", "empty"}


def test_one_artifact_with_device_code_is_enough_for_a_check(here: Path) -> None:
    assert wheelslim(here, "check", "-a", "sm_86", "empty", "demo.whl").returncode == 0


def test_a_pattern_to_ignore_that_matches_nothing_is_told(here: Path) -> None:
    result = wheelslim(here, "check", "-a", "sm_86", "--ignore", "libother*", "demo.whl")
    assert result.returncode == 0
    assert "note: --ignore libother* matches no library with device code" in result.stdout


def test_packages_to_choose_from_are_not_listed_without_end(here: Path) -> None:
    site = here / "empty"
    for number in range(30):
        (site / f"package{number:02}-1.dist-info").mkdir()
        (site / f"package{number:02}-1.dist-info" / "RECORD").write_text("")
    result = wheelslim(here, "env", "-a", "sm_86", "-p", "nosuch", "empty")
    assert result.returncode == 2
    assert "package07 and 22 more)" in result.stderr


@pytest.mark.parametrize("command", ["inspect", "prune -a sm_86", "prune -n -a sm_86"])
@pytest.mark.parametrize("taken", ["demo.whl", "text", "zero.whl", "empty", "pipe", "link", "dangling"])
def test_a_page_replaces_nothing_but_a_page(here: Path, command: str, taken: str) -> None:
    os.mkfifo(here / "pipe")
    (here / "link").symlink_to("text")
    (here / "dangling").symlink_to("absent")
    before = {path: path.lstat() for path in here.iterdir()}
    result = wheelslim(here, *command.split(), "--html", taken, "demo.whl")
    assert result.returncode == 2, result.stderr
    assert f"{taken}: this exists and is no HTML page" in result.stderr
    assert result.stdout == ""
    after = {path: path.lstat() for path in here.iterdir()}
    assert {path: (s.st_ino, s.st_size) for path, s in after.items()} == {
        path: (s.st_ino, s.st_size) for path, s in before.items()
    }


def test_a_page_takes_no_name_of_an_output(here: Path) -> None:
    result = wheelslim(here, "prune", "-a", "sm_86", "--html", "slim/demo.whl", "demo.whl")
    assert result.returncode == 2
    assert "a slimmed copy may get this name" in result.stderr
    assert not (here / "slim").exists()


def test_a_page_replaces_an_earlier_one_through_a_link(here: Path) -> None:
    (here / "page.html").write_text("<!DOCTYPE html>\nold")
    (here / "link.html").symlink_to("page.html")
    assert wheelslim(here, "inspect", "--html", "link.html", "demo.whl").returncode == 0
    assert (here / "link.html").is_symlink()
    assert "demo.whl" in (here / "page.html").read_text(encoding="utf-8")


def test_env_replaces_no_library_with_a_page(here: Path) -> None:
    tree = here / "empty"
    (tree / "module.py").write_text("x = 1\n")
    result = wheelslim(here, "env", "-a", "sm_86", "--html", "empty/module.py", "empty")
    assert result.returncode == 2
    assert (tree / "module.py").read_text() == "x = 1\n"


def test_a_page_shows_names_that_are_no_text(here: Path) -> None:
    named = os.fsencode(here) + b"/demo\xff.whl"
    shutil.copyfile(DEMO, named)
    result = wheelslim(here, "inspect", "--html", "page.html", os.fsdecode(named))
    assert result.returncode == 0, result.stderr
    assert "demo\\udcff.whl" in (here / "page.html").read_text(encoding="utf-8")


def test_two_inputs_get_no_output_of_the_same_name(here: Path) -> None:
    shutil.copyfile(DEMO, here / "empty" / "demo.whl")
    result = wheelslim(here, "prune", "-f", "-a", "sm_86", "demo.whl", "empty/demo.whl")
    assert result.returncode == 2
    assert "empty/demo.whl: demo.whl has the same name" in result.stderr
    assert not (here / "slim").exists()


def test_an_output_replaces_no_other_input(here: Path) -> None:
    name = DEMO.name
    shutil.copyfile(DEMO, here / name)
    assert wheelslim(here, "prune", "-a", "sm_86", "-o", ".", name).returncode == 0
    [slimmed] = set(here.glob("cuda_demo*.whl")) - {here / name}
    before = slimmed.stat().st_ino
    result = wheelslim(here, "prune", "-f", "-a", "sm_86", "-o", ".", name, slimmed.name)
    assert result.returncode == 2, result.stderr
    assert slimmed.stat().st_ino == before


def test_a_pipe_is_never_read(here: Path) -> None:
    os.mkfifo(here / "pipe.whl")
    result = wheelslim(here, "prune", "-a", "sm_86", "pipe.whl")
    assert result.returncode == 3
    assert "pipe.whl: neither a file nor a directory" in result.stderr
    result = wheelslim(here, "prune", "-a", "sm_86", "--kernels-used", "pipe.whl", "demo.whl")
    assert result.returncode == 2
    assert "pipe.whl: the profile cannot be read: this is no file" in result.stderr
