"""What files refer to: imports, file names, includes, names hidden in code."""

from __future__ import annotations

import pytest

from wheelslim.groups.globs import matches
from wheelslim.groups.mentions import ending_in, file_names, imported_modules, included


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a/b.py", b"import os, a.c.d as e\n", {"os", "a.c.d"}),
        ("a/b.py", b"from a.tests import helper\n", {"a.tests", "a.tests.helper"}),
        ("a/b.py", b"from . import tests\n", {"a", "a.tests"}),
        (
            "a/b/__init__.py",
            b"from .tests.x import (y, z as w)\n",
            {"a.b.tests.x", "a.b.tests.x.y", "a.b.tests.x.z"},
        ),
        ("a/b/c.py", b"    from ..tests import y\n", {"a.tests", "a.tests.y"}),
        ("a/b.py", b"# import hidden\nx = 'import not'\n", set()),
    ],
)  # fmt: skip
def test_imports(path: str, text: bytes, expected: set[str]) -> None:
    assert set(imported_modules(path, text)) == expected


def test_file_names_are_found_whole_and_only_with_the_endings_asked_for() -> None:
    ends = ending_in({".h", ".hpp", ".a"})
    text = b"open('include/cpp_prefix.h'); x.height; lib/libfoo-1.2.a and some.hppx, b.hpp."
    assert file_names(text, ends) == {"cpp_prefix.h", "libfoo-1.2.a", "b.hpp"}


def test_includes() -> None:
    text = b'#include <ATen/core/Tensor.h>\n  #  include "c10/util/half.h"\n// #include <no.h>\n'
    assert included(text) == {"ATen/core/Tensor.h", "c10/util/half.h"}


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a/include/x/y.h", "**/include/**/*.h", True),
        ("include/y.h", "**/include/**/*.h", True),
        ("a/includes/y.h", "**/include/**/*.h", False),
        ("pkg/tests/deep/x.py", "*/tests/**", True),
        ("pkg/sub/tests/x.py", "*/tests/**", False),
        ("a.b/c", "a?b/*", True),
        ("axb/c/d", "a?b/*", False),
    ],
)
def test_globs(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, (pattern,)) is expected
