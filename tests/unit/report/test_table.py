"""Tables at any width of a terminal: paths give way, values stay whole."""

from __future__ import annotations

import pytest

from wheelslim.report.table import Align, Table

PATH = "cuda_demo/lib/libcuda_demo.so"
VALUES = (".nv_fatbin", "1023.9 MiB", "100.0 %", "2,782", "compute_120 sm_120a sm_75")


def _table(path: str = PATH) -> Table:
    table = Table(
        (
            ("library", Align.PATH),
            ("section", Align.LEFT),
            ("size", Align.RIGHT),
            ("saved", Align.RIGHT),
            ("containers", Align.RIGHT),
            ("kept", Align.WRAP),
        )
    )
    table.rows.append((path, *VALUES))
    table.totals.append(("installed", "", "1023.9 MiB", "-", "", ""))
    return table


@pytest.mark.parametrize("width", [10, 20, 40, 50, 60, 70, 80, 100, 120, 200])
@pytest.mark.parametrize("color", [False, True])
def test_no_value_and_no_title_is_ever_cut(width: int, color: bool) -> None:
    text = _table().render(width, color=color)
    titles = ("library", "section", "size", "saved", "containers", "kept", "installed")
    for whole in (*titles, *VALUES[:-1], *VALUES[-1].split()):
        assert whole in text, whole
    assert text.count("1023.9 MiB") == 2


@pytest.mark.parametrize("width", range(77, 130))
def test_a_table_fits_where_its_path_can_be_shortened(width: int) -> None:
    lines = _table().render(width).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.startswith(("…", PATH)) and "1023.9 MiB" in line for line in lines)


def test_a_path_without_room_gets_a_line_of_its_own_and_stays_whole() -> None:
    lines = _table().render(64).splitlines()
    assert lines[lines.index(PATH) + 1].startswith(".nv_fatbin  1023.9 MiB  100.0 %       2,782  compute_120")
    assert max(map(len, lines)) <= 64


def test_paths_in_a_row_that_are_alike_are_told_once() -> None:
    table = _table()
    table.rows.append((PATH, "second", *VALUES[1:]))
    text = table.render(64)
    assert text.count(PATH) == 1
    assert text.index(".nv_fatbin") < text.index("second") < text.index("installed")


def test_the_label_of_a_total_is_not_shortened() -> None:
    table = Table((("library", Align.PATH), ("containers", Align.RIGHT)))
    table.rows.append((PATH, "1"))
    table.totals.append(("all of the libraries", "1"))
    assert table.render(32).splitlines()[-1] == "all of the libraries           1"


def test_wide_letters_are_counted_as_the_terminal_shows_them() -> None:
    table = Table((("library", Align.LEFT), ("size", Align.RIGHT)))
    table.rows.append(("库库库库库库", "1.0 KiB"))
    assert table.render(10).splitlines()[-1] == "库库库库库库  1.0 KiB"
