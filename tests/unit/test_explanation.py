"""Explanations: what is selected, what is said of it, and how it is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from builders import fatbin as make
from builders.library import CudaLibrary
from builders.wheel import Wheel
from corpus.recipes import BY_NAME
from judges.schemas import assert_valid
from wheelslim.errors import TargetError, UsageError
from wheelslim.explanation import explain
from wheelslim.report.explanation_json import explanation_json
from wheelslim.report.explanation_text import render_explanation_text
from wheelslim.selection import Coverage

if TYPE_CHECKING:
    from pathlib import Path

RDC, MANY = BY_NAME["rdc"].path, BY_NAME["many_containers"].path


def numbers(**selection: Any) -> list[int]:  # noqa: ANN401
    found = explain(MANY, "sm_86", **selection)
    return [place.number for group in found.groups for place in group.places]


def test_containers_that_are_alike_are_explained_once() -> None:
    (group,) = explain(MANY, "sm_86").groups
    assert [place.number for place in group.places] == list(range(42))
    assert [entry.label for entry in group.entries] == ["sm_80", "sm_86", "sm_90"]
    assert group.places[0].kernels is None


def test_sections_are_told_apart() -> None:
    found = explain(RDC, "sm_86")
    assert [(group.section, len(group.places)) for group in found.groups] == [
        (".nv_fatbin", 1),
        (".nv_fatbin", 1),
        ("__nv_relfatbin", 2),
    ]


def test_one_by_number() -> None:
    assert numbers(container=7) == [7]
    (group,) = explain(MANY, "sm_86", container=7).groups
    assert group.places[0].kernels


def test_one_by_the_address_of_its_wrapper() -> None:
    (group,) = explain(MANY, "sm_86", container=7).groups
    (wrapper,) = group.places[0].wrappers
    assert numbers(wrapper=wrapper) == [7]


@pytest.mark.parametrize("pattern", ["kernel_17", "^kernel_17\\(float", "_Z\\d+kernel_17"])
def test_one_by_the_name_of_its_kernel(pattern: str) -> None:
    found = explain(MANY, "sm_86", kernel=pattern)
    named = [name for group in found.groups for place in group.places for name in place.kernels or ()]
    assert len(named) == 1
    assert "kernel_17" in named[0]
    assert "(" in named[0]


@pytest.mark.parametrize("selection", [{"container": 42}, {"wrapper": 8}, {"kernel": "no_such_kernel"}])
def test_nothing_that_matches_is_an_error(selection: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no container matches"):
        numbers(**selection)


def test_a_broken_expression_is_an_error() -> None:
    with pytest.raises(UsageError, match="no regular expression"):
        numbers(kernel="(")


def test_a_kernel_in_two_containers_gives_both(tmp_path: Path) -> None:
    found = explain(RDC, "sm_86", kernel="twice")
    assert len([place for group in found.groups for place in group.places]) == 2
    assert {group.section for group in found.groups} == {".nv_fatbin", "__nv_relfatbin"}


def test_a_library_inside_a_wheel(tmp_path: Path) -> None:
    wheel = Wheel({"pkg/a.so": MANY.read_bytes(), "pkg/b.so": RDC.read_bytes(), "pkg/c.py": b""}).write(
        tmp_path
    )
    assert explain(wheel, "sm_86", library="b.so").library == "pkg/b.so"
    assert explain(wheel, "sm_86", library="pkg/a*").library == "pkg/a.so"
    with pytest.raises(UsageError, match=r"several libraries.*pkg/a\.so, pkg/b\.so.*--library"):
        explain(wheel, "sm_86")
    with pytest.raises(UsageError, match="no library with device code"):
        explain(wheel, "sm_86", library="c*")


def test_before_and_after() -> None:
    kept = explain(MANY, "sm_89").groups[0]
    assert kept.before == kept.after
    assert kept.before[0].coverage is Coverage.COMPATIBLE
    lost = explain(MANY, "sm_89", exact=True).groups[0]
    assert lost.after[0].coverage is Coverage.NONE
    assert "CHANGED" in render_explanation_text(explain(MANY, "sm_89", exact=True), None)


def test_unreadable_kernels_are_told(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(CudaLibrary((make.container([make.Entry(b"no cubin" * 20)]),)).build().data)
    (group,) = explain(path, "sm_86", name_kernels=True).groups
    assert group.places[0].kernels == ()
    assert "cubin" in group.places[0].fault
    assert "not all can be named" in render_explanation_text(explain(path, "sm_86", container=0), None)


def test_targets_that_are_no_devices_keep_their_ptx() -> None:
    (first, *_) = explain(BY_NAME["many_archs"].path, "compute_120", container=1).groups
    kept = [entry.label for entry in first.entries if entry.verdict.reason.keeps]
    assert kept == ["compute_120"]
    assert first.before == ()


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(TargetError):
        explain(MANY, "sm_99")


TEXT = """\
lib.so
for sm_86; 3 containers of 2 kinds

2 containers of .nv_fatbin, 1.9 KiB: 0, 2

#  entry   sm_86                                   pruned
────────────────────────────────────────────────────────────────────────
0  sm_80   taken: the nearest lower number of 8.x  compatible with sm_86
1  sm_120  runs on 12.x alone                      dropped

sm_86 runs entry 0 (compatible with sm_80), before and after

container 1 of .nv_fatbin: address ADDRESS, wrapper at WRAPPER, 488 B

#  entry  sm_86              pruned
────────────────────────────────────
0  sm_90  runs on 9.x alone  dropped

sm_86 runs nothing of it, before and after
"""


def test_the_whole_text(tmp_path: Path) -> None:
    both = make.container(["sm_80", "sm_120"])
    built = CudaLibrary((both, make.container(["sm_90"]), both)).build()
    path = tmp_path / "lib.so"
    path.write_bytes(built.data)
    text = render_explanation_text(replace(explain(path, "sm_86"), artifact="lib.so"), 80)
    expected = TEXT.replace("ADDRESS", f"{built.containers[1]:#x}").replace(
        "WRAPPER", f"{built.wrappers[1]:#x}"
    )
    assert text == expected


def test_json() -> None:
    value = json.loads(json.dumps(explanation_json(explain(RDC, "sm_86,sm_90", container=1))))
    assert_valid(value)
    (group,) = value["groups"]
    assert group["targets"]["sm_86"]["before"] == {"coverage": "exact", "entries": [1]}
    assert group["entries"][0]["targets"]["sm_86"] == {"runs": True, "taken": False, "why": "sm_86 is nearer"}
    assert group["containers"][0]["kernels"]
    assert_valid(explanation_json(explain(MANY, "sm_86")))
