"""What is asked of pip, and how its report is read; pip itself is asked in tests/integration."""

from __future__ import annotations

import stat
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from wheelslim.errors import ArtifactError, StorageError, UsageError
from wheelslim.wheelhouse.pip import Pip, Requirements, Resolved


def fake_pip(directory: Path, script: str) -> Pip:
    """A program in the place of pip, whose arguments land in ``arguments.txt``."""
    path = directory / "pip.py"
    path.write_text(
        "import json, pathlib, sys\n"
        f"pathlib.Path({str(directory / 'arguments.txt')!r}).write_text('\\n'.join(sys.argv[1:]))\n"
        f"{script}\n"
    )
    return Pip((sys.executable, str(path)))


def item(url: str, **more: object) -> dict[str, Any]:
    return {
        "download_info": {"url": url, "archive_info": {"hashes": {"sha256": "ab" * 32}}},
        "is_direct": False,
        "metadata": {"name": "Demo", "version": "1.0"},
        **more,
    }


def reporting(*items: dict[str, Any]) -> str:
    report = {"version": "1", "install": list(items)}
    return (
        "place = sys.argv[sys.argv.index('--report') + 1]\n"
        f"pathlib.Path(place).write_text(json.dumps({report!r}))"
    )


def test_the_report_gives_names_versions_places_and_hashes(tmp_path: Path) -> None:
    pip = fake_pip(tmp_path, reporting(item("https://host/a%2Bb/demo-1.0-py3-none-any.whl")))
    assert pip.resolve(Requirements(words=("demo",))) == (
        Resolved("Demo", "1.0", "https://host/a%2Bb/demo-1.0-py3-none-any.whl", "ab" * 32),
    )


def test_all_words_reach_pip(tmp_path: Path) -> None:
    requirements = Requirements(
        files=(Path("requirements.txt"),),
        words=("torch==2.14.1",),
        index_url="https://one/simple",
        extra_index_urls=("https://two/simple",),
        find_links=("wheels",),
        python_version="3.12",
        platforms=("manylinux_2_28_x86_64", "linux_x86_64"),
    )
    fake_pip(tmp_path, reporting()).resolve(requirements)
    words = (tmp_path / "arguments.txt").read_text().split("\n")
    assert words[0] == "install"
    assert {"--dry-run", "--ignore-installed", "--target"} <= set(words)
    pairs = list(pairwise(words))
    for pair in (
        ("--only-binary", ":all:"),
        ("--requirement", "requirements.txt"),
        ("--index-url", "https://one/simple"),
        ("--extra-index-url", "https://two/simple"),
        ("--find-links", "wheels"),
        ("--python-version", "3.12"),
        ("--platform", "manylinux_2_28_x86_64"),
        ("--platform", "linux_x86_64"),
    ):
        assert pair in pairs
    assert words[-1] == "torch==2.14.1"


@pytest.mark.parametrize(
    "found",
    [
        item("https://host/demo-1.0.tar.gz"),
        item("file:///src/demo", download_info={"url": "file:///src/demo", "dir_info": {"editable": True}}),
        item(
            "https://host/demo.git",
            download_info={"url": "https://host/demo.git", "vcs_info": {"vcs": "git"}},
        ),
    ],
)
def test_what_is_no_wheel_is_refused(tmp_path: Path, found: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="Demo comes from something else than a wheel"):
        fake_pip(tmp_path, reporting(found)).resolve(Requirements(words=("demo",)))


def test_the_words_of_pip_are_in_the_error(tmp_path: Path) -> None:
    script = (
        "sys.stderr.write('WARNING: noise\\nERROR: No matching distribution found for demo\\n'); sys.exit(1)"
    )
    with pytest.raises(StorageError, match="No matching distribution found for demo") as caught:
        fake_pip(tmp_path, script).resolve(Requirements(words=("demo",)))
    assert "noise" not in str(caught.value)


def test_the_wheel_that_was_resolved_is_downloaded_by_its_hash(tmp_path: Path) -> None:
    script = (
        "place = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1])\n"
        "listed = pathlib.Path(sys.argv[sys.argv.index('--requirement') + 1]).read_text()\n"
        "place.joinpath('demo-1.0-py3-none-any.whl').write_text(listed)"
    )
    directory = tmp_path / "download"
    directory.mkdir()
    pip = fake_pip(tmp_path, script)
    path = pip.download(Resolved("Demo", "1.0", "https://host/x.whl", "cd" * 32), Requirements(), directory)
    assert path.read_text() == f"Demo==1.0 --hash=sha256:{'cd' * 32}\n"
    words = (tmp_path / "arguments.txt").read_text().split("\n")
    assert {"download", "--no-deps", "--require-hashes"} <= set(words)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///opt/my%20wheels/a-1-py3-none-any.whl", "/opt/my wheels/a-1-py3-none-any.whl"),
        ("https://host/a-1-py3-none-any.whl", None),
        ("file://server/share/a-1-py3-none-any.whl", None),
    ],
)
def test_wheels_of_this_machine_are_known_by_their_path(url: str, path: str | None) -> None:
    found = Resolved("a", "1", url, None).local_path
    assert found == (None if path is None else Path(path))


def test_uv_stands_in_where_there_is_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python, uv = tmp_path / "python", tmp_path / "uv"
    for path, code in ((python, 1), (uv, 0)):
        path.write_text(f"#!/bin/sh\nexit {code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Pip.find().command[:3] == (str(uv), "tool", "run")
    uv.unlink()
    with pytest.raises(UsageError, match="neither pip nor uv"):
        Pip.find()
