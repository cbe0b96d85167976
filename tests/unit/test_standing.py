"""The driver's rule in words, as a table: what each device makes of each entry of a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from builders import fatbin as make
from builders import strategies
from builders.sources import source_of
from wheelslim.architecture import ComputeCapability
from wheelslim.fatbin.reader import read_container
from wheelslim.selection import choose
from wheelslim.standing import standings

if TYPE_CHECKING:
    from wheelslim.fatbin.model import Container


def container_of(data: bytes) -> Container:
    with source_of(data) as source:
        return read_container(source, 0)


TABLE = [
    (["sm_86"], 86, ["taken: built for 8.6"]),
    (["sm_80", "sm_86"], 86, ["sm_86 is nearer", "taken: built for 8.6"]),
    (["sm_75", "sm_80"], 86, ["runs on 7.x alone", "taken: the nearest lower number of 8.x"]),
    (["sm_89", "sm_80"], 86, ["runs from 8.9 on", "taken: the nearest lower number of 8.x"]),
    (["sm_80", "compute_80"], 86, ["taken: the nearest lower number of 8.x", "a cubin goes before PTX"]),
    (
        ["sm_75", "compute_80", "compute_75", "compute_90"],
        86,
        [
            "runs on 7.x alone",
            "taken: no cubin runs here, and this is the nearest PTX",
            "compute_80 is nearer",
            "PTX for 9.0 and later",
        ],
    ),
    (["compute_80"], 90, ["taken: there is no cubin, and this is the nearest PTX"]),
    (["sm_90a", "sm_90"], 90, ["taken: built for 9.0; ties with 1 more of that number"] * 2),
    (["sm_90a"], 100, ["runs on 9.0 alone"]),
    (["compute_90a"], 100, ["runs on 9.0 alone"]),
    (["sm_100f"], 103, ["taken: the nearest lower number of 10.x"]),
    (["sm_100f"], 120, ["runs on the family of 10.0 alone"]),
    (["sm_103f"], 100, ["runs from 10.3 on"]),
    (["lto_86", "sm_86"], 86, ["of a kind that the rule does not speak of", "taken: built for 8.6"]),
    ([], 86, []),
]


@pytest.mark.parametrize(("entries", "number", "expected"), TABLE)
def test_every_entry_gets_its_reason(entries: list[str], number: int, expected: list[str]) -> None:
    container = container_of(make.container(entries))
    found = standings(container.entries, ComputeCapability.of_number(number))
    assert [one.why for one in found] == expected
    assert [one.taken for one in found] == [why.startswith("taken") for why in expected]


def test_a_cubin_of_the_other_kind_stands_between() -> None:
    data = make.container([make.Entry(bytes(64), 80, make.CUBIN_VARIANT), "compute_80", "sm_86"])
    container = container_of(data)
    found = [one.why for one in standings(container.entries, ComputeCapability(8, 6))]
    assert found == [
        "a cubin goes before a cubin of kind 0x10",
        "a cubin goes before PTX",
        "taken: built for 8.6",
    ]
    found = [one.why for one in standings(container.entries, ComputeCapability(8, 0))]
    assert found == ["taken: built for 8.0", "a cubin of kind 0x10 goes before PTX", "runs from 8.6 on"]


def test_a_concatenated_entry_speaks_for_each_of_its_cubins() -> None:
    container = container_of(make.container([make.concatenated(["sm_75", "sm_90"])]))
    (one,) = standings(container.entries, ComputeCapability(8, 6))
    assert one.why == "runs on 7.x alone; runs on 9.x alone"


@given(strategies.containers(odd=True))
def test_words_and_rule_agree(entries: tuple[make.Entry, ...]) -> None:
    container = container_of(make.container(entries))
    for number in (75, 86, 90, 103, 121):
        device = ComputeCapability.of_number(number)
        found = standings(container.entries, device)
        assert [i for i, one in enumerate(found) if one.taken] == sorted(
            choose(container.entries, device).entries
        )
        assert all(one.runs or not one.taken for one in found)
