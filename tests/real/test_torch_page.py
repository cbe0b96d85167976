"""The page of the pruned PyTorch wheel in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from judges import chromium
from real.pruned import wheelslim

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.slow]

LARGEST_PAGE = 100_000


def test_it_shows_on_desktop_and_phone(real_wheel: Callable[[str], Path], tmp_path: Path) -> None:
    browser = chromium.find()
    page, slim = tmp_path / "report.html", tmp_path / "slim"
    run = wheelslim(
        tmp_path, "prune", "-q", "-a", "sm_86", "--html", str(page), "-o", str(slim), str(real_wheel("torch"))
    )
    assert run.exit_code == 0, run.stderr
    for wheel in slim.iterdir():
        wheel.unlink()
    assert page.stat().st_size < LARGEST_PAGE
    for width, height in ((1280, 2200), (390, 3600)):
        shown = browser.show(page, width, tmp_path)
        assert shown.console == ()
        assert shown.overflow <= 0
        assert shown.boxes > 30
        picture = tmp_path / f"torch-{width}.png"
        browser.screenshot(page, width, height, picture)
        assert picture.stat().st_size > 50_000  # An empty page of that size takes a tenth.
