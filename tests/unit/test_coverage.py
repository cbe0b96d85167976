"""Coverage of targets: the verdict of each library, what fails, and how it is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from builders import cubin as make_cubin
from builders import fatbin as make
from builders.library import CudaLibrary
from builders.wheel import Wheel
from corpus.recipes import BY_NAME
from judges.schemas import assert_valid
from wheelslim.coverage import LOOSE, Check, Verdict, check
from wheelslim.errors import TargetError, UsageError
from wheelslim.report.coverage_json import check_json
from wheelslim.report.coverage_text import render_check_text
from wheelslim.selection import Coverage
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from pathlib import Path


def library(path: Path, *containers: list[str | make.Entry]) -> Path:
    path.write_bytes(CudaLibrary(tuple(make.container(entries) for entries in containers)).build().data)
    return path


def verdicts(result: Check) -> dict[str, Verdict]:
    (only,) = result.libraries
    return {item.target: item.verdict for item in only.targets}


def test_each_verdict(tmp_path: Path) -> None:
    path = library(
        tmp_path / "lib.so", ["sm_80", "compute_90"], ["sm_86", "compute_90"], ["sm_80", "compute_90"]
    )
    found = verdicts(check(path, "sm_75, sm_80, sm_89, sm_100"))
    assert found == {
        "sm_75": Verdict.NONE,
        "sm_80": Verdict.MIXED,  # The second container has nothing for 8.0.
        "sm_89": Verdict.COMPATIBLE,
        "sm_100": Verdict.JIT,
    }
    assert verdicts(check(library(tmp_path / "one.so", ["sm_80"]), "sm_80")) == {"sm_80": Verdict.EXACT}


def test_counts_of_a_mixed_library(tmp_path: Path) -> None:
    path = library(tmp_path / "lib.so", ["sm_86"], ["sm_80"], ["sm_80"], ["sm_90"])
    (item,) = check(path, "sm_86").libraries[0].targets
    assert item.counts == {Coverage.EXACT: 1, Coverage.COMPATIBLE: 2, Coverage.NONE: 1}
    assert [(gap.labels, [place.number for place in gap.places]) for gap in item.gaps] == [(("sm_90",), [3])]


def test_a_container_for_other_devices_alone_fails_only_when_strict(tmp_path: Path) -> None:
    path = library(tmp_path / "lib.so", ["sm_86"], ["sm_90"])
    assert check(path, "sm_86").covered
    assert not check(path, "sm_86", strict=True).covered
    assert check(library(tmp_path / "all.so", ["sm_86"], ["sm_80"]), "sm_86", strict=True).covered


def test_the_empty_cubins_of_a_device_link_are_no_gap() -> None:
    """Without -rdc nvcc links nothing, for the targets that have cubins: PTX never appears there."""
    result = check(BY_NAME["rdc"].path, "sm_121", strict=True)
    assert result.covered
    jit = check(BY_NAME["many_archs"].path, "sm_120", strict=True)
    assert jit.covered


def test_a_device_that_compiles_everything_from_ptx_is_covered_by_jit(tmp_path: Path) -> None:
    built = CudaLibrary(
        (make.container(["sm_80", "compute_80"]),), relocatable=(make.container(["sm_80", "compute_80"]),)
    )
    path = tmp_path / "lib.so"
    path.write_bytes(built.build().data)
    assert verdicts(check(path, "sm_90")) == {"sm_90": Verdict.JIT}


def test_emptied_containers_do_not_count_as_gaps(tmp_path: Path) -> None:
    path = library(tmp_path / "lib.so", ["sm_86"], [])
    assert verdicts(check(path, "sm_86", strict=True)) == {"sm_86": Verdict.EXACT}


def test_a_library_with_nothing_but_empty_containers_is_not_covered(tmp_path: Path) -> None:
    """This is what a filter by name leaves of a library that has only sm_80 code for an sm_86."""
    result = check(library(tmp_path / "lib.so", [], []), "sm_86")
    assert verdicts(result) == {"sm_86": Verdict.NONE}
    assert "all of its containers are empty" in render_check_text(result, None)


def test_entries_that_the_rule_does_not_speak_of_are_no_failure(tmp_path: Path) -> None:
    result = check(library(tmp_path / "lib.so", ["lto_86"]), "sm_86", strict=True)
    assert verdicts(result) == {"sm_86": Verdict.UNKNOWN}
    assert result.covered


def test_ignored_libraries_are_shown_and_do_not_count(tmp_path: Path) -> None:
    old = library(tmp_path / "old.so", ["sm_70"]).read_bytes()
    new = library(tmp_path / "new.so", ["sm_86"]).read_bytes()
    wheel = Wheel({"pkg/lib_cuda118.so": old, "pkg/lib_cuda130.so": new}).write(tmp_path)
    assert not check(wheel, "sm_86").covered
    for pattern in ("*cuda118*", "pkg/*118.so", "lib_cuda118.so"):
        result = check(wheel, "sm_86", ignore=[pattern])
        assert result.covered
        assert {item.path: item.ignored for item in result.libraries} == {
            "pkg/lib_cuda118.so": True,
            "pkg/lib_cuda130.so": False,
        }
    assert not check(wheel, "sm_86", ignore=["other/*"]).covered


def test_an_artifact_without_device_code_is_covered(tmp_path: Path) -> None:
    result = check(Wheel({"pkg/__init__.py": b""}).write(tmp_path), "sm_86")
    assert result.covered
    assert "No library with device code" in render_check_text(result, None)


@pytest.mark.parametrize(
    ("asked", "told"), [("sm_86", False), ("sm_89", True), ("8.6", False), ("sm_86+ptx", False)]
)
def test_a_slimmed_artifact_tells_for_which_targets(tmp_path: Path, asked: str, told: bool) -> None:
    stamp = json.dumps({"schema": "wheelslim/stamp/1", "targets": ["sm_86", "sm_90+ptx"]}).encode()
    built = Wheel(
        {"pkg/lib.so": BY_NAME["many_archs"].path.read_bytes()}, dist_info={"wheelslim.json": stamp}
    ).write(tmp_path)
    notices = check(built, asked).notices
    assert bool(notices) is told
    assert not told or "slimmed for sm_86, sm_90+ptx" in notices[0]


@pytest.mark.parametrize(
    "stamp", [b"", b"[]", b"{}", b'{"schema": "other/1", "targets": []}', b"\xff", b"[" * 5000]
)
def test_a_broken_stamp_is_a_notice(tmp_path: Path, stamp: bytes) -> None:
    built = Wheel({"a.so": BY_NAME["plain"].path.read_bytes()}, dist_info={"wheelslim.json": stamp})
    (notice,) = check(built.write(tmp_path), "sm_86").notices
    assert "wheelslim.json is not understood" in notice


def test_targets_are_words_or_values() -> None:
    path = BY_NAME["plain"].path
    words = check(path, "sm_90,sm_86").targets
    assert words == check(path, parse_targets("86 9.0")).targets == check(path, ["sm_86", "sm_90"]).targets


@pytest.mark.parametrize("targets", ["compute_90", ["compute_90"], parse_targets("compute_90")])
def test_a_target_has_to_be_a_device(targets: str) -> None:
    with pytest.raises(UsageError, match="no target is a device"):
        check(BY_NAME["plain"].path, targets)


@pytest.mark.parametrize("targets", ["", "sm_99", []])
def test_unknown_words_are_refused(targets: str) -> None:
    with pytest.raises(TargetError):
        check(BY_NAME["plain"].path, targets)


TEXT = """\
lib.so

library  sm_75   sm_86    sm_90
───────────────────────────────
lib.so   none !  mixed !  exact

mixed: containers of  target  exact  compatible  JIT  none
──────────────────────────────────────────────────────────
lib.so                sm_86       -           1    -     1

lib.so: nothing for sm_75 in 1 container of .nv_fatbin with sm_80 sm_90: 0
lib.so: nothing for sm_75 in 1 container of .nv_fatbin with sm_90: 1
lib.so: nothing for sm_86 in 1 container of .nv_fatbin with sm_90: 1

not covered: lib.so has nothing for sm_75; it holds sm_80 sm_90
not covered (--strict): lib.so has 1 container without anything for sm_86

2 of 3 pairs of library and target not covered.
"""


def test_the_whole_text(tmp_path: Path) -> None:
    path = library(tmp_path / "lib.so", ["sm_80", "sm_90"], ["sm_90"])
    result = replace(check(path, "sm_75,sm_86,sm_90", strict=True), artifact="lib.so")
    assert render_check_text(result, 80, verbose=True) == TEXT


def test_many_targets_still_fit_eighty_columns() -> None:
    result = check(BY_NAME["many_archs"].path, "7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.3 12.0 12.1")
    text = render_check_text(result, 80)
    assert max(len(line) for line in text.splitlines()[1:-1]) <= 80
    assert "sm_121  compatible" in text


def test_json(tmp_path: Path) -> None:
    value = check_json(check(library(tmp_path / "lib.so", ["sm_80"], ["sm_90"]), "sm_86,sm_75"))
    assert_valid(value)
    assert value["covered"] is False
    assert value["libraries"][0]["targets"]["sm_86"] == {
        "coverage": "mixed",
        "covered": True,
        "containers": {"exact": 0, "compatible": 1, "jit": 0, "none": 1},
        "gaps": [{"section": ".nv_fatbin", "architectures": ["sm_90"], "containers": [1]}],
    }


def test_loose_files_are_checked_as_one(tmp_path: Path) -> None:
    files = {"a/k_sm_90a.cubin": make_cubin.cubin(sm=90), "a/k_sm_86.cubin": make_cubin.cubin(sm=86)}
    wheel = Wheel(files).write(tmp_path)
    result = check(wheel, "sm_75,sm_89,sm_90")
    assert verdicts(result) == {"sm_75": Verdict.NONE, "sm_89": Verdict.MIXED, "sm_90": Verdict.MIXED}
    assert [(library.path, item.target) for library, item in result.failures] == [(LOOSE, "sm_75")]
    assert "has nothing for sm_75; it holds sm_86 sm_90a" in render_check_text(result, None, verbose=True)
    assert_valid(check_json(result))
    assert check(wheel, "sm_75", ignore=["loose*"]).covered
