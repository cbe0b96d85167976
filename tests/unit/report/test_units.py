"""Numbers and paths as people read them."""

from __future__ import annotations

import pytest

from wheelslim.report.units import count_text, fitted_path, printable, saved_text, size_text


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
        (14, "…torch_cuda.so"),
        (3, "…rch_cuda.so"),
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
