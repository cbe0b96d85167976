"""Wheel names; packaging is the judge of what they mean to pip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import parse_wheel_filename

from wheelslim.archive.wheel_name import WheelName, with_build_line
from wheelslim.errors import ArchiveError, UsageError, WheelslimError

NAMES = {
    "torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl": ("torch", "2.14.1", None),
    "torch-2.1.2-2-cp311-cp311-manylinux1_x86_64.whl": ("torch", "2.1.2", "2"),
    "torch-2.1.2+cu121-cp311-cp311-linux_x86_64.whl": ("torch", "2.1.2+cu121", None),
    "nvidia_cufft-12.0.0.61-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl": (
        "nvidia_cufft",
        "12.0.0.61",
        None,
    ),
    "demo-1.0-0_sm80-py2.py3-none-any.whl": ("demo", "1.0", "0_sm80"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_split_and_join(name: str) -> None:
    parsed = WheelName.parse(name)
    assert (parsed.distribution, parsed.version, parsed.build) == NAMES[name]
    assert str(parsed) == name


@pytest.mark.parametrize(
    "name",
    ["torch.whl", "torch-2.1.whl", "torch-2.1-py3-none-any.zip", "a-b-1-2-py3-none-any.whl", "", ".whl"],
)
def test_what_is_no_wheel_name_is_refused(name: str) -> None:
    with pytest.raises(ArchiveError, match="no name of a wheel"):
        WheelName.parse(name)


def test_a_build_tag_puts_the_slimmed_wheel_before_the_original() -> None:
    name = WheelName.parse("torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl")
    slim = name.with_build("0_sm80_sm86")
    assert str(slim) == "torch-2.14.1-0_sm80_sm86-cp311-cp311-manylinux_2_28_x86_64.whl"
    old, new = parse_wheel_filename(str(name)), parse_wheel_filename(str(slim))
    assert (old[0], old[1], old[3]) == (new[0], new[1], new[3])
    assert new[2] > old[2]


@pytest.mark.parametrize("tag", ["", "sm80", "0-sm80", "0 sm80", "0/x", "0\n"])
def test_what_is_no_build_tag_is_refused(tag: str) -> None:
    with pytest.raises(UsageError, match="no build tag"):
        WheelName.parse("demo-1.0-py3-none-any.whl").with_build(tag)


METADATA = b"Metadata-Version: 2.1\nName: My-Cuda.demo\nVersion: 1.0+cu12\n\nName: not this\n"
WHEEL = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\n"
DERIVED = {
    "one tag": (WHEEL + b"Tag: cp311-cp311-linux_x86_64\n", "cp311-cp311-linux_x86_64"),
    "several platforms": (
        WHEEL + b"Tag: py3-none-manylinux2014_x86_64\nTag: py3-none-manylinux_2_17_x86_64\n",
        "py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64",
    ),
    "several Pythons": (WHEEL + b"Tag: py2-none-any\nTag: py3-none-any\n", "py2.py3-none-any"),
    "build": (WHEEL + b"Build: 3\nTag: py3-none-any\n", "3-py3-none-any"),
    "Windows line ends": ((WHEEL + b"Tag: py3-none-any\n").replace(b"\n", b"\r\n"), "py3-none-any"),
}


@pytest.mark.parametrize("case", DERIVED)
def test_the_name_is_derived_from_the_metadata(case: str) -> None:
    wheel, tags = DERIVED[case]
    assert str(WheelName.derive(METADATA, wheel)) == f"My_Cuda_demo-1.0+cu12-{tags}.whl"


@pytest.mark.parametrize(
    ("metadata", "wheel"),
    [
        (b"Name: x\n", WHEEL + b"Tag: py3-none-any\n"),
        (b"Version: 1\n", WHEEL + b"Tag: py3-none-any\n"),
        (METADATA, WHEEL),
        (METADATA, WHEEL + b"Tag: py3\n"),
        (b"Name: a/b\nVersion: 1\n", WHEEL + b"Tag: py3-none-any\n"),
        (b"Name: a\nVersion: 1/../2\n", WHEEL + b"Tag: py3-none-any\n"),
        (b"", b""),
    ],
)
def test_metadata_that_names_nothing_is_refused(metadata: bytes, wheel: bytes) -> None:
    with pytest.raises(ArchiveError):
        WheelName.derive(metadata, wheel)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_metadata_give_a_name_or_an_error_of_ours(metadata: bytes, wheel: bytes) -> None:
    try:
        name = str(WheelName.derive(b"Name: x\n" + metadata, b"Tag: py3-none-any\n" + wheel))
    except WheelslimError:
        return
    assert "/" not in name


BUILD_LINES = {
    "added after the tags": (b"A: 1\nTag: x\nTag: y\nB: 2\n", b"A: 1\nTag: x\nTag: y\nBuild: 0\nB: 2\n"),
    "replaced": (b"A: 1\nBuild: 7\nTag: x\n", b"A: 1\nBuild: 0\nTag: x\n"),
    "replaced in any case": (b"build:7\nTag: x\n", b"Build: 0\nTag: x\n"),
    "two become one": (b"Build: 7\nTag: x\nBuild: 8\n", b"Build: 0\nTag: x\n"),
    "no line end at the end": (b"A: 1\nTag: x", b"A: 1\nTag: x\nBuild: 0\n"),
    "Windows line ends": (b"A: 1\r\nTag: x\r\n", b"A: 1\r\nTag: x\r\nBuild: 0\r\n"),
    "before the blank line": (b"A: 1\nTag: x\n\n", b"A: 1\nTag: x\nBuild: 0\n\n"),
    "not in the body": (b"Tag: x\n\nBuild: 7\n", b"Tag: x\nBuild: 0\n\nBuild: 7\n"),
    "no tags": (b"A: 1\n\n", b"A: 1\nBuild: 0\n\n"),
    "odd spaces stay": (b"A:  1 \nTag: x\n", b"A:  1 \nTag: x\nBuild: 0\n"),
}


@pytest.mark.parametrize("case", BUILD_LINES)
def test_the_build_line_alone_changes(case: str) -> None:
    before, after = BUILD_LINES[case]
    assert with_build_line(before, "0") == after
    assert with_build_line(after, "0") == after
