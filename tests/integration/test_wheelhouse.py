"""``wheelslim wheelhouse`` as people run it: pip resolves and downloads, pip and uv install the result."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.environment_trees import MANY, NO_SM_86, PLAIN
from builders.wheel import Member, Wheel
from judges.programs import must, program
from judges.schemas import assert_valid

if TYPE_CHECKING:
    from collections.abc import Iterator

ALONE = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_NO_CACHE_DIR": "1",
    "PIP_FIND_LINKS": "",
    "PIP_EXTRA_INDEX_URL": "",
}
OFFLINE = {**ALONE, "PIP_NO_INDEX": "1"}
SLIM = "demo-1.0-0_sm86-py3-none-any.whl"


def wheelslim(*words: str | Path, env: dict[str, str] = OFFLINE) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path("src").resolve()), **env}
    return subprocess.run(
        [sys.executable, "-m", "wheelslim", "wheelhouse", *map(str, words)],
        capture_output=True, text=True, env=environment, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Upstream wheels: demo needs demo-blas and pure; hopper has no code for sm_86."""
    directory = tmp_path / "upstream"
    directory.mkdir()
    needs = "Requires-Dist: demo-blas\nRequires-Dist: pure>=1\nRequires-Python: >=3.8\n"
    demo: dict[str, Member | bytes] = {"demo/__init__.py": b"", "demo/libdemo.so": Member(MANY, mode=0o755)}
    for wheel in (
        Wheel(demo, name="demo", tag="py3-none-any", metadata=needs),
        Wheel({"blas/libblas.so": PLAIN}, name="demo-blas", tag="py3-none-any"),
        Wheel({"pure.py": b"x = 1\n"}, name="pure", tag="py3-none-any"),
        Wheel({"hopper/lib.so": NO_SM_86}, name="hopper", tag="py3-none-any"),
    ):
        wheel.write(directory)
    return directory


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serve a directory on this machine; yields its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def upstream_index(source: Path) -> None:
    """A plain PEP 503 index of the upstream wheels, hashes in the links."""
    for wheel in source.glob("*.whl"):
        project = wheel.name.partition("-")[0].replace("_", "-")
        page = source / "simple" / project / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        page.write_text(f'<html><body><a href="/{wheel.name}#sha256={digest}">{wheel.name}</a></body></html>')


def test_wheels_are_slimmed_and_pure_ones_kept(source: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    done = wheelslim("-a", "sm_86", "demo", "-o", house, "--find-links", source)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in house.glob("*.whl")}
    assert names == {SLIM, "demo_blas-1.0-0_sm86-py3-none-any.whl", "pure-1.0-py3-none-any.whl"}
    assert (house / "pure-1.0-py3-none-any.whl").read_bytes() == (
        source / "pure-1.0-py3-none-any.whl"
    ).read_bytes()
    assert len(list(house.glob(".wheelslim-*"))) == 0
    lock = json.loads((house / "wheelhouse.json").read_text())
    assert_valid(lock)
    (demo,) = [wheel for wheel in lock["wheels"] if wheel["name"] == "demo"]
    upstream = source / "demo-1.0-py3-none-any.whl"
    assert demo["source_sha256"] == hashlib.sha256(upstream.read_bytes()).hexdigest()
    assert demo["sha256"] == hashlib.sha256((house / SLIM).read_bytes()).hexdigest()


def test_a_second_run_does_nothing_again(source: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    words = ("-a", "sm_86", "demo", "-o", house, "--find-links", source, "--json")
    assert wheelslim(*words).returncode == 0
    before = {path.name: path.stat().st_ino for path in house.glob("*.whl")}
    report = json.loads(wheelslim(*words).stdout)
    assert_valid(report)
    assert sorted(report["reused"]) == sorted(before)
    assert report["slimmed"] == []
    assert {path.name: path.stat().st_ino for path in house.glob("*.whl")} == before


def test_a_wheel_that_was_damaged_is_made_again(source: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    words = ("-a", "sm_86", "demo", "-o", house, "--find-links", source, "--json")
    wheelslim(*words)
    good = (house / SLIM).read_bytes()
    (house / SLIM).write_bytes(good[:-1] + b"?")
    report = json.loads(wheelslim(*words).stdout)
    assert SLIM not in report["reused"]
    assert (house / SLIM).read_bytes() == good


def test_other_targets_need_another_wheelhouse_or_force(source: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    words = ("demo", "-o", house, "--find-links", source)
    wheelslim("-a", "sm_86", *words)
    refused = wheelslim("-a", "sm_90", *words)
    assert refused.returncode == 2
    assert "(expected targets sm_90, found targets sm_86)" in refused.stderr
    assert (house / SLIM).exists()
    forced = wheelslim("-a", "sm_90", *words, "--force")
    assert forced.returncode == 0, forced.stderr
    names = {path.name for path in house.glob("demo-*.whl")}
    assert names == {"demo-1.0-0_sm90-py3-none-any.whl"}  # Else --find-links would choose between two.
    assert not (house / f"{SLIM}.metadata").exists()


def test_wheels_that_are_no_longer_needed_go_and_strangers_stay(source: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    wheelslim("-a", "sm_86", "demo", "-o", house, "--find-links", source)
    (house / "mine-1.0-py3-none-any.whl").write_bytes(b"not ours")
    done = wheelslim("-a", "sm_86", "pure", "-o", house, "--find-links", source)
    assert {path.name for path in house.glob("*.whl")} == {
        "pure-1.0-py3-none-any.whl",
        "mine-1.0-py3-none-any.whl",
    }
    assert "no longer needed, removed: 2 wheels" in done.stdout


def test_a_wheel_without_code_for_the_target_is_kept_and_named(source: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    done = wheelslim("-a", "sm_86", "demo", "hopper", "-o", house, "--find-links", source)
    assert done.returncode == 0, done.stderr
    assert (house / "hopper-1.0-py3-none-any.whl").exists()
    assert "hopper" in done.stdout
    alone = wheelslim("-a", "sm_86", "hopper", "-o", tmp_path / "alone", "--find-links", source)
    assert alone.returncode == 4
    assert list((tmp_path / "alone").iterdir()) == []
    again = wheelslim("-a", "sm_90", "hopper", "-o", tmp_path / "alone", "--find-links", source)
    assert again.returncode == 0, again.stderr


def test_a_run_without_code_for_the_target_leaves_an_older_wheelhouse_alone(
    source: Path, tmp_path: Path
) -> None:
    house = tmp_path / "house"
    assert wheelslim("-a", "sm_86", "demo", "-o", house, "--find-links", source).returncode == 0
    before = {path.name: path.read_bytes() for path in house.iterdir() if path.is_file()}
    for extra in ((), ("--force",)):
        failed = wheelslim("-a", "sm_86", "hopper", "-o", house, "--find-links", source, *extra)
        assert failed.returncode == 4
        assert {path.name: path.read_bytes() for path in house.iterdir() if path.is_file()} == before


def test_what_pip_does_not_find_is_said_in_its_words(source: Path, tmp_path: Path) -> None:
    done = wheelslim("-a", "sm_86", "nowhere", "-o", tmp_path / "house", "--find-links", source)
    assert done.returncode == 5
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_requirements_files_are_read_and_nothing_is_an_error(source: Path, tmp_path: Path) -> None:
    listed = tmp_path / "requirements.txt"
    listed.write_text(f"--find-links {source}\npure==1.0\n")
    assert wheelslim("-a", "sm_86", "-r", listed, "-o", tmp_path / "house").returncode == 0
    assert wheelslim("-a", "sm_86", "-o", tmp_path / "house").returncode == 2


def test_a_failed_run_keeps_what_is_done_for_the_next(source: Path, tmp_path: Path) -> None:
    """The wheel that pip names second is broken; the first is done, and not done again."""
    house = tmp_path / "house"
    broken = source / "demo_blas-1.0-py3-none-any.whl"
    whole = broken.read_bytes()
    data = bytearray(whole)
    data[200] ^= 0xFF
    broken.write_bytes(bytes(data))
    words = ("-a", "sm_86", "demo", "-o", house, "--find-links", source, "--json")
    failed = wheelslim(*words)
    assert failed.returncode not in (0, 2)
    assert not (house / "requirements.slim.txt").exists()
    broken.write_bytes(whole)
    report = json.loads(wheelslim(*words).stdout)
    assert SLIM in report["reused"]


@pytest.mark.parametrize("finished", [False, True])
def test_a_failed_run_does_not_lend_its_wheels_to_other_targets(
    source: Path, tmp_path: Path, finished: bool
) -> None:
    """Two runs for different targets, of which the first or the second fails at its second wheel."""
    house = tmp_path / "house"
    broken = source / "demo_blas-1.0-py3-none-any.whl"
    whole = broken.read_bytes()
    words = ("demo", "-o", house, "--find-links", source)
    if finished:
        assert wheelslim("-a", "sm_86", *words).returncode == 0
    broken.write_bytes(whole[:200] + bytes([whole[200] ^ 0xFF]) + whole[201:])
    assert wheelslim("-a", "sm_90" if finished else "sm_86", *words, "--force").returncode not in (0, 2)
    broken.write_bytes(whole)
    done = wheelslim("-a", "sm_90", *words, *(["--force"] if finished else []))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in house.glob("demo*.whl")} == {
        "demo-1.0-0_sm90-py3-none-any.whl",
        "demo_blas-1.0-0_sm90-py3-none-any.whl",
    }


def test_downloads_from_an_index_over_http(source: Path, tmp_path: Path) -> None:
    upstream_index(source)
    house = tmp_path / "house"
    with served(source) as address:
        words = ("-a", "sm_86", "demo", "-o", house, "--index-url", f"{address}/simple")
        done = wheelslim(*words, env=ALONE)
    assert done.returncode == 0, done.stderr
    assert "downloading demo 1.0" in done.stderr
    assert (house / SLIM).exists()
    assert sorted(path.name for path in house.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize("over", ["file", "http"])
def test_pip_and_uv_install_from_the_index_with_hashes(source: Path, tmp_path: Path, over: str) -> None:
    house = tmp_path / "house"
    assert wheelslim("-a", "sm_86", "demo", "-o", house, "--find-links", source).returncode == 0
    listed = str(house / "requirements.slim.txt")
    uv_env = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_NO_CONFIG": "1"}
    with served(house) as address:
        index = f"{address}/simple" if over == "http" else (house / "simple").as_uri()
        pip = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", listed]
        must([*pip, "--index-url", index, "--target", str(tmp_path / "pip")], env=ALONE)
        uv = [
            program("uv"),
            "pip",
            "install",
            "-q",
            "--require-hashes",
            "-r",
            listed,
            "--python",
            sys.executable,
        ]
        must([*uv, "--index-url", index, "--target", str(tmp_path / "uv")], env=uv_env)
    for installer in ("pip", "uv"):
        library = tmp_path / installer / "demo/libdemo.so"
        assert library.stat().st_size < len(MANY)
        assert (tmp_path / installer / "blas/libblas.so").stat().st_size < len(PLAIN)


def test_pip_and_uv_install_from_the_directory(source: Path, tmp_path: Path) -> None:
    house = tmp_path / "house"
    assert wheelslim("-a", "sm_86", "demo", "-o", house, "--find-links", source).returncode == 0
    links = ["--no-index", "--find-links", str(house)]
    must(
        [sys.executable, "-m", "pip", "install", "-q", *links, "--target", str(tmp_path / "pip"), "demo"],
        env=ALONE,
    )
    uv = [program("uv"), "pip", "install", "-q", "--offline", "--python", sys.executable, *links]
    must([*uv, "--target", str(tmp_path / "uv"), "demo"], env={"UV_CACHE_DIR": str(tmp_path / "cache")})
    for installer in ("pip", "uv"):
        assert (tmp_path / installer / "demo/libdemo.so").stat().st_size < len(MANY)


def test_a_hash_that_does_not_match_is_refused_by_pip(source: Path, tmp_path: Path) -> None:
    """The lock protects: a wheel that was exchanged after the fact does not install."""
    house = tmp_path / "house"
    wheelslim("-a", "sm_86", "pure", "-o", house, "--find-links", source)
    other = Wheel({"pure.py": b"evil = 1\n"}, name="pure", tag="py3-none-any").write(tmp_path)
    (house / "pure-1.0-py3-none-any.whl").write_bytes(other.read_bytes())
    listed = str(house / "requirements.slim.txt")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", listed, "--no-index",
         "--find-links", str(house), "--target", str(tmp_path / "out")],
        env={**os.environ, **ALONE}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "HASH" in done.stderr.upper()
