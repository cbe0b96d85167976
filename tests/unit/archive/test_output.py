"""Outputs appear whole or not at all, and leftovers of killed runs go."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wheelslim.archive.output import atomic_output
from wheelslim.archive.scratch import PREFIX, Scratch, remove_leftovers
from wheelslim.archive.storage import storage_errors
from wheelslim.errors import StorageError, UsageError

SOURCE = Path(__file__).parents[3] / "src"


def test_the_output_appears_at_the_end_and_nothing_else(tmp_path: Path) -> None:
    final = tmp_path / "new" / "x.whl"
    with atomic_output(final, force=False) as temporary:
        temporary.write_bytes(b"whole")
        assert not final.exists()
        assert temporary.parent == final.parent
    assert final.read_bytes() == b"whole"
    assert list(final.parent.iterdir()) == [final]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_nothing(error: type[BaseException], tmp_path: Path) -> None:
    with pytest.raises(error), atomic_output(tmp_path / "x.whl", force=False) as temporary:
        temporary.write_bytes(b"half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_an_existing_output_needs_force_and_stays_on_failure(tmp_path: Path) -> None:
    final = tmp_path / "x.whl"
    final.write_bytes(b"old")
    with pytest.raises(UsageError, match="--force"), atomic_output(final, force=False):
        pytest.fail("must not be entered")
    with pytest.raises(ValueError, match="boom"), atomic_output(final, force=True) as temporary:
        temporary.write_bytes(b"new")
        raise ValueError("boom")
    assert final.read_bytes() == b"old"
    with atomic_output(final, force=True) as temporary:
        temporary.write_bytes(b"new")
    assert final.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [final]


def test_an_output_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    final = tmp_path / "x.whl"
    with pytest.raises(UsageError), atomic_output(final, force=False) as temporary:
        temporary.write_bytes(b"ours")
        final.write_bytes(b"theirs")
    assert final.read_bytes() == b"theirs"


@pytest.mark.skipif(os.name == "nt", reason="no umask there")
def test_the_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_output(tmp_path / "x.whl", force=False):
            pass
        (tmp_path / "ordinary").touch()
    finally:
        os.umask(before)
    assert (tmp_path / "x.whl").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_directory_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError), atomic_output(tmp_path / "file" / "x.whl", force=False):
        pytest.fail("must not be entered")


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "space"), (errno.EACCES, "permissions"), (errno.EROFS, "read-only")]
)
def test_refusals_of_the_system_say_what_to_do(number: int, hint: str) -> None:
    with pytest.raises(StorageError, match=hint) as caught, storage_errors(Path("x.whl")):
        raise OSError(number, os.strerror(number))
    assert caught.value.exit_code == 5
    assert "x.whl" in str(caught.value)


KILLED = """
import os, sys, pathlib
from wheelslim.archive.output import atomic_output
with atomic_output(pathlib.Path(sys.argv[1]), False) as temporary:
    temporary.write_bytes(b"half")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.name == "nt", reason="needs advisory locks")
def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    final = tmp_path / "x.whl"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(final)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        (left,) = tmp_path.iterdir()
        assert left.name.startswith(PREFIX)
        assert remove_leftovers(tmp_path) == 0, "it belongs to a running process"
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert left.exists()
    with atomic_output(final, force=False):
        pass
    assert list(tmp_path.iterdir()) == [final]


def test_free_scratch_space_is_given_back_when_the_next_size_is_known(tmp_path: Path) -> None:
    def allocated() -> int:
        return sum(os.fstat(file.fd).st_size for file in files if file.fd >= 0)

    with Scratch(tmp_path) as scratch:
        files = [scratch.take(1000), scratch.take(2000), scratch.take(3000)]
        for file, size in zip(files, (1000, 2000, 3000), strict=True):
            os.pwrite(file.fd, bytes(size), 0)
        scratch.give_back(files[1])
        scratch.give_back(files[2])
        assert allocated() == 6000
        assert scratch.take(500) in files
        assert allocated() == 1500
        files.append(scratch.take(700))
        assert allocated() == 1500


def test_scratch_files_have_no_name_and_are_used_again(tmp_path: Path) -> None:
    with Scratch(tmp_path / "scratch") as scratch:
        first = scratch.take()
        second = scratch.take()
        assert first.fd != second.fd
        if os.name != "nt":
            assert list((tmp_path / "scratch").iterdir()) == []
        scratch.give_back(first)
        assert scratch.take() is first
        fd = first.fd
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    assert list((tmp_path / "scratch").iterdir()) == []
