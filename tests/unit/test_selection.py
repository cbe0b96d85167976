"""The driver's rule as a table: which of these entries does this device run?

Expectations come from NVIDIA's compatibility guides and from docs/how-it-works.md, "What stays".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import fatbin as make
from builders.sources import source_of
from wheelslim.architecture import Architecture, ComputeCapability
from wheelslim.fatbin.reader import read_container
from wheelslim.selection import Coverage, also_safe, choose, runs_cubin, runs_ptx

if TYPE_CHECKING:
    from wheelslim.fatbin.model import Entry


def entries(*words: str | make.Entry) -> tuple[Entry, ...]:
    with source_of(make.container(words)) as source:
        return read_container(source, 0).entries


def device(number: int) -> ComputeCapability:
    return ComputeCapability.of_number(number)


@pytest.mark.parametrize(
    ("built", "runs_on", "fails_on"),
    [
        ("sm_80", (80, 86, 87, 89), (75, 90, 70, 120)),
        ("sm_86", (86, 87, 89), (80, 90)),
        ("sm_90", (90,), (89, 100)),
        ("sm_90a", (90,), (89, 100)),
        ("sm_100", (100, 103, 101), (90, 110, 120)),
        ("sm_100a", (100,), (103, 90)),
        ("sm_100f", (100, 103), (101, 110, 120, 90)),
        ("sm_103f", (103,), (100,)),
        ("sm_103a", (103,), (100,)),
        ("sm_101f", (101,), (100, 103)),
        ("sm_110f", (110,), (100, 120)),
        ("sm_120f", (120, 121), (110, 100)),
        ("sm_121a", (121,), (120,)),
        ("sm_75", (75,), (70, 72, 80)),
        ("sm_70", (70, 72, 75), (61, 80)),
    ],
)
def test_where_a_cubin_runs(built: str, runs_on: tuple[int, ...], fails_on: tuple[int, ...]) -> None:
    architecture = Architecture.parse(built)
    assert [number for number in runs_on if not runs_cubin(architecture, device(number))] == []
    assert [number for number in fails_on if runs_cubin(architecture, device(number))] == []


@pytest.mark.parametrize(
    ("built", "runs_on", "fails_on"),
    [
        ("compute_75", (75, 80, 90, 120), (70, 72)),
        ("compute_90", (90, 100, 120), (89,)),
        ("compute_90a", (90,), (100, 89, 120)),
        ("compute_100f", (100, 103), (110, 120, 90)),
    ],
)
def test_where_ptx_can_be_compiled(built: str, runs_on: tuple[int, ...], fails_on: tuple[int, ...]) -> None:
    architecture = Architecture.parse(built)
    assert [number for number in runs_on if not runs_ptx(architecture, device(number))] == []
    assert [number for number in fails_on if runs_ptx(architecture, device(number))] == []


VARIANT_80 = make.Entry(b"variant", sm=80, kind=make.CUBIN_VARIANT)
VARIANT_90 = make.Entry(b"variant", sm=90, kind=make.CUBIN_VARIANT)
LTO = make.entry("lto_86")
RELOCATABLE = make.Entry(b".version 9.0", sm=86, kind=make.RELOCATABLE_PTX)
TILE = make.Entry(b"tile", sm=86, kind=make.TILE)
CONCATENATED = make.concatenated(["sm_80", "sm_90a"])


@pytest.mark.parametrize(
    ("content", "number", "text", "chosen"),
    [
        # exact before compatible before JIT
        (("sm_80", "sm_86", "compute_86"), 86, "exact", (1,)),
        (("sm_80", "sm_90", "compute_80"), 86, "compatible with sm_80", (0,)),
        (("sm_75", "sm_80", "sm_86"), 89, "compatible with sm_86", (2,)),
        (("sm_86", "sm_80"), 89, "compatible with sm_86", (0,)),
        (("sm_75", "compute_75"), 86, "JIT from compute_75", (1,)),
        (("compute_75", "compute_80", "compute_90"), 86, "JIT from compute_80", (1,)),
        (("sm_89", "sm_90", "compute_89"), 86, "none", ()),
        ((), 86, "none", ()),
        # cubins of libcublasLt: a filter by name would take the only cubin away
        (("sm_80", "sm_89", "sm_90", "sm_120"), 86, "compatible with sm_80", (0,)),
        # any cubin beats any PTX, however near
        (("sm_80", "compute_86"), 86, "compatible with sm_80", (0,)),
        # a cubin beats its variant, and the variant beats PTX
        (("sm_80", VARIANT_80), 80, "exact", (0,)),
        ((VARIANT_80, "sm_80"), 86, "compatible with sm_80", (1,)),
        ((VARIANT_80, "compute_86"), 86, "compatible with sm_80", (0,)),
        ((VARIANT_90, "compute_86"), 86, "JIT from compute_86", (1,)),
        # ties are kept, all of them
        (("sm_86", "sm_86", "sm_80"), 86, "exact", (0, 1)),
        (("compute_80", "sm_90", "compute_80"), 86, "JIT from compute_80", (0, 2)),
        (("sm_90", "sm_90a"), 90, "exact", (0, 1)),
        (("sm_90a", "sm_90"), 90, "exact", (0, 1)),
        (("sm_100", "sm_100a", "sm_100f"), 100, "exact", (0, 1, 2)),
        # suffixes
        (("sm_90a", "compute_90"), 100, "JIT from compute_90", (1,)),
        (("sm_100f", "sm_103"), 103, "exact", (1,)),
        (("sm_100f", "compute_90"), 103, "compatible with sm_100f", (0,)),
        (("sm_100a", "compute_90"), 103, "JIT from compute_90", (1,)),
        (("sm_120f",), 121, "compatible with sm_120f", (0,)),
        (("sm_120a",), 121, "none", ()),
        # kinds that the driver does not choose from
        ((LTO, RELOCATABLE, TILE), 86, "none", ()),
        ((LTO, "compute_80"), 86, "JIT from compute_80", (1,)),
        # a concatenated entry is chosen for what is in it
        ((CONCATENATED, "compute_80"), 86, "compatible with sm_80", (0,)),
        ((CONCATENATED, "sm_86"), 86, "exact", (1,)),
        ((CONCATENATED, "sm_90"), 90, "exact", (0, 1)),
        ((CONCATENATED,), 75, "none", ()),
    ],
)
def test_what_a_device_chooses(
    content: tuple[str | make.Entry, ...], number: int, text: str, chosen: tuple[int, ...]
) -> None:
    choice = choose(entries(*content), device(number))
    assert (choice.text, choice.entries) == (text, chosen)
    assert (choice.coverage is Coverage.NONE) == (text == "none")


@pytest.mark.parametrize(
    ("content", "number", "kept_too"),
    [
        # integrated devices: the nearest lower cubin and the best PTX stay beside the exact cubin
        (("sm_80", "sm_87", "compute_80"), 87, (0, 2)),
        (("sm_80", "sm_86", "sm_87"), 87, (1,)),
        (("sm_70", "sm_72", "compute_61", "compute_70"), 72, (0, 3)),
        (("sm_80", "sm_86"), 86, ()),
        # Thor answers to two numbers
        (("sm_101", "sm_110"), 110, (0,)),
        (("sm_101a",), 110, (0,)),
        (("sm_110",), 101, (0,)),
        # a desktop device whose nearest cubin is an integrated device's
        (("sm_80", "sm_87", "compute_80"), 89, (0, 2)),
        (("sm_86", "sm_87", "sm_89"), 89, ()),
    ],
)
def test_what_stays_beside_the_choice(
    content: tuple[str, ...], number: int, kept_too: tuple[int, ...]
) -> None:
    assert also_safe(entries(*content), device(number)) == kept_too


NUMBERS = st.sampled_from([50, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120, 121])
WORDS = st.builds("{}{}".format, st.sampled_from(["sm_", "compute_"]), NUMBERS)


@given(st.lists(WORDS, max_size=8), NUMBERS)
def test_the_choice_is_one_that_runs_and_none_is_nearer(content: list[str], number: int) -> None:
    """Without suffixes the rule fits into four lines; spell them out."""
    choice = choose(entries(*content), device(number))
    built = [(word.partition("_")[0], int(word.partition("_")[2])) for word in content]
    cubins = [sm for kind, sm in built if kind == "sm" and sm // 10 == number // 10 and sm <= number]
    ptx = [sm for kind, sm in built if kind == "compute" and sm <= number]
    best = ("sm", max(cubins)) if cubins else ("compute", max(ptx)) if ptx else None
    assert choice.entries == tuple(index for index, pair in enumerate(built) if pair == best)
