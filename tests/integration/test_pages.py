"""Pages of prune and inspect in a real browser: desktop and phone, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders.wheel import Member, Wheel
from corpus.recipes import BY_NAME
from judges import chromium
from real.pruned import wheelslim

if TYPE_CHECKING:
    from pathlib import Path

    from judges.chromium import Chromium

DESKTOP, PHONE = 1280, 390
NAMES = ("many_archs", "many_containers", "rdc", "suffixes", "ptx_only", "lto")


@pytest.fixture(scope="module")
def browser() -> Chromium:
    return chromium.find()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files: dict[str, Member | bytes] = {
        f"cuda_demo/lib/{name}_with_quite_a_long_file_name.so": BY_NAME[name].path.read_bytes()
        for name in NAMES
    }
    files["cuda_demo/__init__.py"] = b"x = 1\n" * 1000
    return Wheel(files).write(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=["prune", "dry-run", "inspect", "inspect-arch"])
def page(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    path = folder / "report.html"
    words = {
        "prune": ("prune", "-a", "sm_86,sm_90", "-o", str(folder / "slim")),
        "dry-run": ("prune", "-n", "-a", "8.6+PTX"),
        "inspect": ("inspect",),
        "inspect-arch": ("inspect", "-a", "sm_86"),
    }[request.param]
    run = wheelslim(folder, *words, "--html", str(path), str(wheel))
    assert run.exit_code == 0, run.stderr
    return path


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_it_shows_without_errors_and_without_scrolling_sideways(
    page: Path, width: int, browser: Chromium, tmp_path: Path
) -> None:
    shown = browser.show(page, width, tmp_path)
    assert shown.console == ()
    assert shown.width == width
    assert shown.overflow <= 0
    assert shown.boxes > len(NAMES)
    assert shown.treemap > 200
    falling, rising = shown.sorted
    assert falling == tuple(sorted(falling, reverse=True))
    assert rising == tuple(sorted(rising))
    assert len(falling) >= 4
    assert len(set(falling)) > 1


def test_it_is_dark_where_the_reader_wants_dark(page: Path, browser: Chromium, tmp_path: Path) -> None:
    light = browser.show(page, DESKTOP, tmp_path).paper
    dark = browser.show(page, DESKTOP, tmp_path, "--blink-settings=preferredColorScheme=0").paper
    assert brightness(light) > 200
    assert brightness(dark) < 60


def brightness(color: str) -> float:
    channels = [int(part) for part in color.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(channels) / len(channels)


def test_two_artifacts_do_not_fit_one_page(wheel: Path, tmp_path: Path) -> None:
    for words in (("inspect",), ("prune", "-a", "sm_86")):
        run = wheelslim(tmp_path, *words, "--html", str(tmp_path / "x.html"), str(wheel), str(wheel))
        assert run.exit_code == 2
        assert not (tmp_path / "x.html").exists()


def test_a_page_that_cannot_be_written_is_an_error_of_storage(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    run = wheelslim(tmp_path, "inspect", "--html", str(tmp_path / "taken" / "x.html"), str(wheel))
    assert run.exit_code == 5
    assert "Traceback" not in run.stderr


def test_the_judge_sees_errors_and_scrolling(browser: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text('<body><div style="width: 2000px">wide</div><script>nothing();</script></body>')
    shown = browser.show(page, PHONE, tmp_path)
    assert shown.overflow > 1000
    assert len(shown.console) == 1
