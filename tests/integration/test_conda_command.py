"""``wheelslim`` on conda packages, as people run it: exit codes, names, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from builders.conda import CondaPackage, Item, contents_of, members_of, symlink
from wheelslim.archive import conda_rewrite
from wheelslim.errors import TargetNeverSupportedError
from wheelslim.pipeline import PruneOptions, prune
from wheelslim.plan import Request
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = [".conda", ".tar.bz2"]
QUICK = ("--compression-level", "3")


def wheelslim(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wheelslim", *map(str, words)],
        capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip


def report(result: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    (found,) = json.loads(result.stdout)["artifacts"]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def package(corpus: Callable[[str], Path]) -> CondaPackage:
    library = corpus("many_containers").read_bytes()
    return CondaPackage(
        [
            Item("lib/libdemo.so.1", library, mode=0o755),
            symlink("lib/libdemo.so", "libdemo.so.1"),
            Item("share/note", b"x"),
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_prune_verify_and_inspect_take_both_formats(package: CondaPackage, tmp_path: Path, kind: str) -> None:
    path = package.write(tmp_path, kind)
    before, out = path.read_bytes(), tmp_path / "out"
    found = report(wheelslim("prune", "-a", "sm_86", "--json", *QUICK, "-o", out, path))
    assert found["output"] == str(out / path.name)
    assert [one.name for one in out.iterdir()] == [path.name]
    assert path.read_bytes() == before
    stamp = json.loads(contents_of(out / path.name)["info/wheelslim.json"])
    assert stamp["targets"] == ["sm_86"]
    assert list(stamp["libraries"]) == ["lib/libdemo.so.1"]
    verified = wheelslim("verify", path, out / path.name)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    inspected = wheelslim("inspect", out / path.name)
    assert inspected.returncode == 0
    assert "sm_86" in inspected.stdout
    assert "sm_80" not in inspected.stdout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["conda", "tar.bz2"])
def test_format_and_build_suffix_give_the_name(
    package: CondaPackage, tmp_path: Path, kind: str, other: str
) -> None:
    path = package.write(tmp_path, kind, file_name=f"download{kind}")
    words = ("--format", other, "--build-suffix", "sm86", "--json", *QUICK)
    found = report(wheelslim("prune", "-a", "sm_86", *words, "-o", tmp_path / "out", path))
    assert found["output"] == str(tmp_path / f"out/cudademo-1.0-h0_0_sm86.{other}")
    assert json.loads(contents_of(tmp_path / f"out/cudademo-1.0-h0_0_sm86.{other}")["info/index.json"])[
        "build"
    ].endswith("_sm86")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subdir", ["linux-64", "noarch"])
def test_packages_without_device_code_have_nothing_to_prune(tmp_path: Path, kind: str, subdir: str) -> None:
    path = CondaPackage([Item("site-packages/a.py", b"pass\n")], subdir=subdir).write(tmp_path, kind)
    result = wheelslim("prune", "-a", "sm_86", "-o", tmp_path / "out", path)
    assert result.returncode == 0
    assert "nothing to prune" in result.stdout
    assert not list((tmp_path / "out").glob("*"))


BAD = {
    "outside": lambda package: CondaPackage([*package.items, Item("../x", b"x")]),
    "link outside": lambda package: CondaPackage([*package.items, symlink("x", "/etc/passwd")]),
    "disagreement": lambda package: CondaPackage(package.items, entries={"share/note": {"sha256": "0" * 64}}),
    "no paths.json": lambda package: CondaPackage(package.items, info={"info/paths.json": None}),
    "no index.json": lambda package: CondaPackage(package.items, info={"info/index.json": None}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", BAD)
def test_bad_packages_end_with_exit_code_3_and_no_output(
    package: CondaPackage, tmp_path: Path, kind: str, case: str
) -> None:
    path = BAD[case](package).write(tmp_path, kind)
    result = wheelslim("prune", "-a", "sm_86", *QUICK, "-o", tmp_path / "out", path)
    assert result.returncode == 3
    assert str(path) in result.stderr
    assert "Traceback" not in result.stderr
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_package_ends_with_exit_code_3(package: CondaPackage, tmp_path: Path, kind: str) -> None:
    path = package.write(tmp_path, kind)
    os.truncate(path, path.stat().st_size // 2)
    result = wheelslim("prune", "-a", "sm_86", "-o", tmp_path / "out", path)
    assert result.returncode == 3
    assert not list((tmp_path / "out").glob("*"))


def test_force_mends_paths_json(package: CondaPackage, tmp_path: Path) -> None:
    path = BAD["disagreement"](package).write(tmp_path)
    found = report(
        wheelslim("prune", "-a", "sm_86", "--force", "--json", *QUICK, "-o", tmp_path / "out", path)
    )
    assert "mended" in str(found["notices"])


def test_a_target_that_no_code_runs_on_ends_with_exit_code_4(package: CondaPackage, tmp_path: Path) -> None:
    path = package.write(tmp_path)
    result = wheelslim("prune", "-a", "sm_75", *QUICK, "-o", tmp_path / "out", path)
    assert result.returncode == 4
    assert not list((tmp_path / "out").glob("*"))


def test_a_target_that_no_code_runs_on_is_found_before_anything_is_compressed(
    package: CondaPackage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compresses(*_: object) -> None:
        pytest.fail("something was compressed")

    monkeypatch.setattr(conda_rewrite, "CondaWriter", compresses)
    options = PruneOptions(Request(parse_targets("sm_75")), output_dir=tmp_path / "out")
    with pytest.raises(TargetNeverSupportedError):
        prune(package.write(tmp_path), options)


def test_options_for_conda_are_refused_for_other_files(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    result = wheelslim("prune", "-a", "sm_86", "--build-suffix", "x", "-o", tmp_path / "out", corpus("plain"))
    assert result.returncode == 2


def test_groups_left_out_go_from_the_lists_too(package: CondaPackage, tmp_path: Path) -> None:
    path = package.write(tmp_path)
    words = ("--drop-glob", "share/**", "--build-suffix", "x", "--json", *QUICK)
    report(wheelslim("prune", "-a", "sm_86", *words, "-o", tmp_path, path))
    out = tmp_path / "cudademo-1.0-h0_0_x.conda"
    assert [member.name for member in members_of(out)["pkg"]] == ["lib/libdemo.so.1", "lib/libdemo.so"]
    assert b"share/note" not in contents_of(out)["info/paths.json"] + contents_of(out)["info/files"]
