"""What stays of a container for a request, and the reason given for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import fatbin as make
from builders import strategies
from builders.sources import source_of
from wheelslim.fatbin.reader import read_container
from wheelslim.plan import ContainerPlan, Planner, PtxPolicy, Reason, Request
from wheelslim.selection import Coverage, choose
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from wheelslim.fatbin.model import Container


def container(*words: str | make.Entry) -> Container:
    with source_of(make.container(words)) as source:
        return read_container(source, 0)


def plan(
    words: tuple[str | make.Entry, ...], targets: str, ptx: str = "auto", *, exact: bool = False
) -> ContainerPlan:
    request = Request(parse_targets(targets), PtxPolicy(ptx), exact)
    return Planner(request).plan(container(*words))


MANY = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120", "compute_120")
SOME = ("sm_80", "sm_90", "compute_80", "compute_90")


@pytest.mark.parametrize(
    ("content", "targets", "kept"),
    [
        (MANY, "sm_86", ("sm_86",)),
        (MANY, "sm_75 sm_90", ("sm_75", "sm_90", "sm_90a")),
        (MANY, "sm_90a", ("sm_90", "sm_90a")),
        (MANY, "sm_121", ("sm_120",)),
        (MANY, "sm_70", ()),
        (MANY, "sm_103", ("sm_100",)),
        (SOME, "sm_86", ("sm_80",)),
        (SOME, "sm_100", ("compute_90",)),
        (SOME, "sm_86 sm_100", ("sm_80", "compute_90")),
        (("sm_80", "compute_80", "sm_90", "compute_90"), "sm_75", ()),
        (("compute_75", "sm_75"), "sm_86", ("compute_75",)),
        # integrated devices
        (("sm_80", "sm_86", "sm_87", "compute_80"), "sm_87", ("sm_86", "sm_87", "compute_80")),
        (("sm_80", "sm_86", "sm_87", "compute_80"), "sm_86", ("sm_86",)),
    ],
)
def test_the_rule(content: tuple[str, ...], targets: str, kept: tuple[str, ...]) -> None:
    made = plan(content, targets)
    assert tuple(content[index] for index in made.kept) == kept
    assert made.lost == ()


@pytest.mark.parametrize(
    ("policy", "targets", "kept"),
    [
        ("auto", "sm_90", ("sm_90",)),
        ("all", "sm_90", ("sm_90", "compute_80", "compute_90")),
        ("none", "sm_90", ("sm_90",)),
        ("auto", "sm_100", ("compute_90",)),
        ("all", "sm_100", ("compute_80", "compute_90")),
        ("none", "sm_100", ()),
        # asked for by name, beside the device or alone
        ("auto", "sm_90+PTX", ("sm_90", "compute_90")),
        ("auto", "sm_86+PTX", ("sm_80", "compute_80")),
        ("auto", "sm_75+PTX", ("compute_80",)),
        ("auto", "sm_90 compute_80", ("sm_90", "compute_80")),
        ("auto", "compute_80", ("compute_80",)),
        ("auto", "compute_75", ()),
        ("none", "sm_90+PTX", ("sm_90",)),
    ],
)
def test_ptx(policy: str, targets: str, kept: tuple[str, ...]) -> None:
    assert tuple(SOME[index] for index in plan(SOME, targets, policy).kept) == kept


def test_dropping_ptx_that_a_target_needs_is_a_loss() -> None:
    made = plan(SOME, "sm_90 sm_100", "none")
    assert made.lost == (1,)
    assert [choice.coverage for choice in made.before] == [Coverage.EXACT, Coverage.JIT]
    assert [choice.coverage for choice in made.after] == [Coverage.EXACT, Coverage.NONE]


@pytest.mark.parametrize(
    ("content", "targets", "kept", "lost"),
    [
        (("sm_80", "sm_90"), "sm_86", (), (0,)),
        (("sm_80", "sm_86", "sm_90"), "sm_86 sm_89", ("sm_86",), ()),
        (("sm_90", "sm_90a"), "sm_90a", ("sm_90a",), (0,)),
        (("sm_90", "sm_90a"), "sm_90", ("sm_90",), (0,)),
        (("sm_90", "compute_90"), "sm_90", ("sm_90",), ()),
        (("sm_90", "compute_90"), "sm_90+PTX", ("sm_90", "compute_90"), ()),
        (("sm_90", "compute_90"), "compute_90", ("compute_90",), ()),
        ((make.concatenated(["sm_80", "sm_90"]), "sm_86"), "sm_90", ("concatenated",), ()),
    ],
)
def test_the_filter_by_name_and_what_it_loses(
    content: tuple[str | make.Entry, ...], targets: str, kept: tuple[str, ...], lost: tuple[int, ...]
) -> None:
    made = plan(content, targets, exact=True)
    named = [word if isinstance(word, str) else "concatenated" for word in content]
    assert tuple(named[index] for index in made.kept) == kept
    assert made.lost == lost


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("kind", [make.INDEX + 1, make.RELOCATABLE_PTX, make.TILE, 0x400])
def test_kinds_that_the_rule_does_not_speak_of_stay(kind: int, exact: bool) -> None:
    made = plan(("sm_80", make.Entry(b"?", sm=50, kind=kind), "sm_90"), "sm_90", exact=exact)
    assert made.kept == (1, 2)
    assert made.verdicts[1].reason is Reason.UNKNOWN_KIND


@pytest.mark.parametrize("exact", [False, True])
def test_a_container_with_an_index_stays_whole(exact: bool) -> None:
    made = plan(
        ("sm_80", make.Entry(b"?", sm=0, kind=make.INDEX), "sm_90", "compute_90"), "sm_90", exact=exact
    )
    assert made.kept == (0, 1, 2, 3)
    assert {verdict.reason for verdict in made.verdicts[:3]} == {Reason.INDEXED}


def test_a_concatenated_entry_stays_for_any_of_its_cubins() -> None:
    whole = make.concatenated(["sm_80", "sm_90"])
    assert plan((whole, "sm_86"), "sm_90").kept == (0,)
    assert plan((whole, "sm_86"), "sm_86").kept == (1,)
    assert plan((whole, "sm_86"), "sm_120").kept == ()


def test_reasons_name_the_targets() -> None:
    made = plan((*MANY, "compute_80"), "sm_86 sm_89 sm_90+PTX sm_87")
    texts = [verdict.text for verdict in made.verdicts]
    assert texts[2] == "exact for sm_86"
    assert texts[3] == "exact for sm_89"
    assert texts[4] == "exact for sm_90+ptx"
    assert texts[0] == texts[1] == texts[6] == "not needed"
    # sm_87 has no cubin here: it runs sm_86's, which sm_86 names first.
    assert texts[9] == "kept beside the nearest for sm_87"


def test_one_reason_gathers_its_targets() -> None:
    made = plan(("sm_80",), "sm_86 sm_89")
    assert made.verdicts[0].text == "compatible with sm_86, sm_89"


def test_equal_containers_are_planned_once_and_different_ones_are_not_confused() -> None:
    planner = Planner(Request(parse_targets("sm_90")))
    first = planner.plan(container("sm_80", "sm_90"))
    assert planner.plan(container("sm_80", "sm_90")) is first
    assert planner.plan(container("sm_90", "sm_80")).kept == (0,)
    assert planner.plan(container("sm_80", "sm_90a")).kept == (1,)
    one, other = make.concatenated(["sm_80", "sm_90"]), make.concatenated(["sm_80", "sm_86"])
    assert planner.plan(container(one)).kept == (0,)
    assert planner.plan(container(other)).kept == ()


def test_a_veto_empties_the_container_and_says_so() -> None:
    made = plan(("sm_80", "sm_90"), "sm_90").vetoed()
    assert made.kept == ()
    assert made.is_vetoed
    assert {verdict.text for verdict in made.verdicts} == {"only dropped kernels"}
    assert [choice.coverage for choice in made.after] == [Coverage.NONE]


TARGETS = st.lists(
    st.sampled_from(["sm_75", "sm_86", "sm_87", "sm_89+PTX", "sm_90a", "sm_103", "sm_121", "sm_110"]),
    min_size=1,
    max_size=4,
)


@given(strategies.containers(odd=True), TARGETS, st.sampled_from(["auto", "all"]))
def test_every_target_chooses_the_same_bytes_before_and_after(
    content: tuple[make.Entry, ...], targets: list[str], policy: str
) -> None:
    made = plan(content, " ".join(targets), policy)
    assert made.lost == ()
    kept = container(*(content[index] for index in made.kept)).entries
    full = container(*content).entries
    for target in parse_targets(targets):
        assert target.capability is not None
        was, now = choose(full, target.capability), choose(kept, target.capability)
        assert [made.kept[index] for index in now.entries] == list(was.entries)


@given(strategies.containers(odd=True), TARGETS)
def test_planning_again_what_was_kept_drops_nothing(
    content: tuple[make.Entry, ...], targets: list[str]
) -> None:
    request = Request(parse_targets(targets))
    kept = [content[index] for index in Planner(request).plan(container(*content)).kept]
    assert Planner(request).plan(container(*kept)).kept == tuple(range(len(kept)))
