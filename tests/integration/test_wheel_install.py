"""A rewritten wheel is a wheel to pip, uv, wheel and unzip, whatever the original was like."""

from __future__ import annotations

import random
import zipfile
from typing import TYPE_CHECKING

import pytest

from builders.rewriters import MARK, CuttingRewriter, expected
from builders.wheel import Member, Wheel
from judges.installers import pip_install, unzip_test, uv_install, wheel_unpack
from wheelslim.archive.output import atomic_output
from wheelslim.archive.wheel import WheelArtifact
from wheelslim.archive.wheel_check import verify_wheel_container
from wheelslim.archive.wheel_rewrite import WheelOptions, rewrite_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIBRARY = MARK + random.Random(7).randbytes(200_000) + bytes(2_000_000)
STORED = MARK + b"stored" * 20_000
FILES: dict[str, Member | bytes] = {
    "demo/__init__.py": b"",
    "demo/lib.so": Member(LIBRARY, mode=0o755, extra=b"UT\x05\x00\x03\x01\x02\x03\x04"),
    "demo/stored.so": Member(STORED, mode=0o755, stored=True),
    "demo/µ, comma.py": b"x = 1\n",
}


def plain(directory: Path) -> Path:
    return Wheel(FILES).write(directory)


def several_platforms(directory: Path) -> Path:
    return Wheel(FILES, tag="py2.py3-none-any").write(directory)


def with_build(directory: Path) -> Path:
    return Wheel(FILES, build="3").write(directory)


def named_otherwise(directory: Path) -> Path:
    return Wheel(FILES).write(directory, "torch.whl")


def signed(directory: Path) -> Path:
    return Wheel(FILES, dist_info={"RECORD.jws": b"{}"}).write(directory)


def windows_lines(directory: Path) -> Path:
    wheel = Wheel(FILES)
    text = wheel.true_record({name: one for name, one in wheel.members().items() if "RECORD" not in name})
    return Wheel(FILES, record=text.replace("\n", "\r\n").encode()).write(directory)


def streamed(directory: Path) -> Path:
    """Written to a pipe: every member has a data descriptor."""
    path = Wheel(FILES).write(directory)
    copy = directory / "copy"
    with zipfile.ZipFile(path) as source, copy.open("wb") as raw:
        raw.seekable = lambda: False  # type: ignore[method-assign]
        with zipfile.ZipFile(raw, "w") as target:
            for info in source.infolist():
                target.writestr(info, source.read(info))
    return copy.rename(path)


def record_first(directory: Path) -> Path:
    path = Wheel(FILES).write(directory)
    copy = directory / "copy"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as target:
        for info in sorted(source.infolist(), key=lambda info: "dist-info" not in info.filename):
            target.writestr(info, source.read(info))
    return copy.rename(path)


@pytest.mark.parametrize(
    "make",
    [plain, several_platforms, with_build, named_otherwise, signed, windows_lines, streamed, record_first],
)
def test_every_tool_takes_the_result(make: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = make(tmp_path / "in")
    with WheelArtifact(path) as artifact:
        name = artifact.name.with_build("0_sm80")
        final = tmp_path / "out" / str(name)
        with atomic_output(final, force=False) as temporary:
            result = rewrite_wheel(artifact, temporary, CuttingRewriter(), WheelOptions(build_tag="0_sm80"))
            verify_wheel_container(
                artifact,
                temporary,
                {one.name for one in result.changed},
                set(result.dropped),
                {artifact.stamp_name},
                read_back=result.changed,
            )
    unzip_test(final)
    for tree in (
        wheel_unpack(final, tmp_path / "unpacked"),
        pip_install(final, tmp_path / "pip"),
        uv_install(final, tmp_path / "uv"),
    ):
        assert (tree / "demo/lib.so").read_bytes() == expected(LIBRARY)
        assert (tree / "demo/stored.so").read_bytes() == expected(STORED)
        assert (tree / "demo/µ, comma.py").read_bytes() == b"x = 1\n"
        assert list(tree.glob("*.dist-info/wheelslim.json"))
        assert (tree / "demo/lib.so").stat().st_mode & 0o111
