"""Numbers and paths as people read them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wheelslim.groups.plan import DropPlan
from wheelslim.kernels.filter import KernelAccount
from wheelslim.loose.plan import LoosePlan
from wheelslim.units import count_text, fitted_path, printable, saved_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parents[2] / "src" / "wheelslim"

# Where a branch has seen to it that there are at least two.
MORE_THAN_ONE = {
    "{len(group.places)} containers of ",
    "{len(indexes)} sections of device code: only the first ",
    "{len(paths)} libraries such as ",
}


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (502_792_192, "479.5 MiB"),
        ((1 << 30) - 1, "1.00 GiB"),
        (5_733_613_568, "5.34 GiB"),
        (3 << 40, "3072.00 GiB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def test_savings() -> None:
    assert saved_text(1000, 546) == "45.4 %"
    assert saved_text(1000, 1000) == "-"
    assert saved_text(0, 0) == "-"
    assert saved_text(1000, 1100) == "-10.0 %"
    assert saved_text(1_000_000, 1_000_100) == "0.0 %"


def test_counts() -> None:
    assert count_text(1, "container") == "1 container"
    assert count_text(2782, "container") == "2,782 containers"
    assert count_text(0, "library", "libraries") == "0 libraries"


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (40, "torch/lib/libtorch_cuda.so"),
        (26, "torch/lib/libtorch_cuda.so"),
        (25, "…/lib/libtorch_cuda.so"),
        (21, "…/libtorch_cuda.so"),
        (14, "libtorc…uda.so"),
        (3, "libtor…da.so"),
    ],
)
def test_a_path_is_shortened_from_the_left_but_never_to_nothing(width: int, shown: str) -> None:
    assert fitted_path("torch/lib/libtorch_cuda.so", width) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe → 1\n", "größe → 1\n"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\rb\tc\x07", "a\\rb\\tc\\x07"),
        ("a\udcffb", "a\\udcffb"),
        ("a\u202eb", "a\\u202eb"),
    ],
)
def test_names_cannot_steer_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown
    printable(text).encode()


def test_sentences_about_one_thing_are_in_the_singular() -> None:
    loose = LoosePlan({"a": "why"}, {"b": "odd"}, {"a": 2048}, unknown=("b",), lists=("sums",))
    assert loose.notices == (
        "loose device code: dropped 1 of 2 files, 2.0 KiB",
        "kept, since not understood: 1 loose file, such as b: odd",
        "left as before: 1 list of checksums, such as sums",
    )
    assert DropPlan({"a": "tests"}, {"b": "imported by c"}).notices == (
        "dropped with tests: 1 file",
        "kept of the groups: 1 file, such as b: imported by c",
    )
    account = KernelAccount(1, 4096, 1, 4096, 0, 0, 0, 1, 1, ("add",), ())
    assert account.text == "emptied 1 of 1 container: only unwanted kernels (4.0 KiB of 4.0 KiB); gone: add"


def plain_counts(tree: ast.Module) -> Iterator[str]:
    """F-strings that write a count straight before a plural: ``{len(files)} files``, ``{n:,} files``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            written, text = ast.unparse(value.value), str(after.value)
            is_count = value.format_spec is not None and ast.unparse(value.format_spec) == "f','"
            if (is_count or written.startswith("len(")) and re.match(r" [a-z]+s\b(?<!bytes)", text):
                yield f"{{{written}}}{text}"


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_count_stands_before_a_plural_that_may_be_one(path: Path) -> None:
    found = list(plain_counts(ast.parse(path.read_text(encoding="utf-8"))))
    assert found == [one for one in found if one in MORE_THAN_ONE]


def test_the_rule_sees_what_it_forbids() -> None:
    bad = ast.parse("f'{len(a)} files', f'{n:,} of {m:,} containers', f'{n} bytes', f'{len(a):,} more'")
    assert list(plain_counts(bad)) == ["{len(a)} files", "{m} containers"]
