"""Report pages: the treemap's geometry, what stands in the HTML, and that nothing breaks out of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelslim.report.html import render_page
from wheelslim.report.page import Area, Bar, Cell, Figure, Grid, Page, Tone, fewer, generation
from wheelslim.report.treemap import Box, lay_out

if TYPE_CHECKING:
    from collections.abc import Iterable

SLACK = 1e-3
"""Percent that rounding may take: the page writes three decimals."""

VOID = {"meta", "link", "br", "img", "hr", "input"}


def page(**parts: object) -> Page:
    whole: dict[str, object] = {
        "title": "torch.whl",
        "lines": ("for sm_86",),
        "figures": (Figure("file", 2000, 1000),),
        "areas": (
            Area(
                "lib.so", 900, Tone.GROUP, (Area("sm_86", 600, Tone.KEPT), Area("sm_90", 300, Tone.DROPPED))
            ),
        ),
        "bars": (Bar("sm_86", 600, 600), Bar("sm_90", 300, 0)),
        "libraries": Grid(
            ("library", "size"),
            ((Cell("a.so"), Cell("9 B", 9)), (Cell("b.so"), Cell("10 B", 10))),
            frozenset({1}),
        ),
        "coverage": Grid(("library", "sm_86"), ((Cell("a.so"), Cell("3 exact", tone="exact")),)),
        "notices": ("a notice",),
    }
    return Page(**(whole | parts))  # type: ignore[arg-type]


class Balanced(HTMLParser):
    """Checks that every element is closed in order; collects elements and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)


def parsed(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_is_sound_and_says_everything_without_a_script() -> None:
    found = parsed(render_page(page()))
    text = " ".join(found.text)
    for expected in (
        "torch.whl",
        "for sm_86",
        "50.0 % saved",
        "a notice",
        "sm_90",
        "a.so",
        "3 exact",
        "dropped",
    ):
        assert expected in text


def test_it_asks_for_nothing_from_anywhere() -> None:
    text = render_page(page())
    assert not re.search(r"https?://|//[a-z]|@import|url\(", text.replace("// Clicking", ""))
    for tag, attributes in parsed(text).elements:
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
        assert tag not in {"iframe", "object", "embed", "form"}
    assert len(text) < 40_000


def test_names_cannot_break_out_of_it() -> None:
    evil = "</p><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
    text = render_page(
        page(
            title=evil,
            lines=(evil,),
            areas=(
                Area(evil, 5, Tone.KEPT),
                Area(f"dir/{evil}", 900, Tone.GROUP, (Area(evil, 900, Tone.KEPT),)),
            ),
            bars=(Bar(evil, 5, 3),),
            libraries=Grid((evil,), ((Cell(evil, title=evil),),)),
            notices=(evil,),
        )
    )
    found = parsed(text)
    assert [tag for tag, _ in found.elements].count("script") == 1
    assert "img" not in {tag for tag, _ in found.elements}
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)


def test_the_same_report_gives_the_same_bytes() -> None:
    assert render_page(page()) == render_page(page())


def test_empty_parts_are_left_out() -> None:
    text = render_page(page(areas=(), bars=(), libraries=None, coverage=None, notices=()))
    assert "<h2>" not in text


def boxes(found: Iterable[Box]) -> list[Box]:
    return [box for outer in found for box in (outer, *boxes(outer.boxes))]


areas = st.recursive(
    st.builds(Area, st.just("leaf"), st.integers(0, 10**9), st.sampled_from([Tone.KEPT, Tone.DROPPED])),
    lambda inner: st.lists(inner, min_size=1, max_size=6).map(
        lambda parts: Area("group", sum(part.size for part in parts), Tone.GROUP, tuple(parts))
    ),
    max_leaves=20,
)


@given(st.lists(areas, max_size=12))
def test_boxes_tile_their_parent_in_proportion(given_areas: list[Area]) -> None:
    found = lay_out(given_areas)
    shown = [area for area in given_areas if area.size]
    assert sorted(box.area.size for box in found) == sorted(area.size for area in shown)
    total = sum(area.size for area in shown)
    for box in found:
        share = box.width * box.height / 100
        assert share == pytest.approx(100 * box.area.size / total, rel=1e-6, abs=1e-9)
    for box in boxes(found):
        assert box.left >= -SLACK
        assert box.top >= -SLACK
        assert box.left + box.width <= 100 + SLACK
        assert box.top + box.height <= 100 + SLACK
    for one in found:
        for other in found:
            if one is not other:
                assert not overlap(one, other)


def overlap(one: Box, other: Box) -> bool:
    across = min(one.left + one.width, other.left + other.width) - max(one.left, other.left)
    down = min(one.top + one.height, other.top + other.height) - max(one.top, other.top)
    return across > SLACK and down > SLACK


def test_many_areas_are_joined() -> None:
    many = [Area(str(size), size, Tone.KEPT) for size in range(1, 101)]
    found = fewer(many, 10, "libraries")
    assert len(found) == 10
    assert sum(area.size for area in found) == sum(area.size for area in many)
    assert found[-1].name == "91 smaller libraries"
    assert fewer(many[:3], 10, "libraries") == tuple(sorted(many[:3], key=lambda area: -area.size))


@pytest.mark.parametrize(
    ("label", "tone"),
    [
        ("sm_52", Tone.MAXWELL),
        ("sm_75", Tone.TURING),
        ("compute_86", Tone.AMPERE),
        ("sm_88", Tone.AMPERE),
        ("sm_89", Tone.ADA),
        ("sm_90a", Tone.HOPPER),
        ("sm_103f", Tone.BLACKWELL),
        ("lto_121", Tone.BLACKWELL_12),
        ("sm_80+sm_90", Tone.AMPERE),
        ("kind 0x400", Tone.OTHER),
        ("concatenated", Tone.OTHER),
    ],
)
def test_generations(label: str, tone: Tone) -> None:
    assert generation(label) is tone
