"""Loose cubins of a real wheel, counted by the SM number that readelf sees in them."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from judges.programs import program
from wheelslim.archive.opener import open_artifact
from wheelslim.loose.plan import LoosePlan, plan_loose
from wheelslim.plan import Planner, Request
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.real


def planned(wheel: Path, words: str) -> LoosePlan:
    with open_artifact(wheel) as artifact:
        return plan_loose(artifact, Planner(Request(parse_targets(words))))


def test_flashinfer_keeps_what_the_device_runs(real_wheel: Callable[[str], Path], tmp_path: Path) -> None:
    wheel = real_wheel("flashinfer-cubin")
    plan = planned(wheel, "sm_100")
    assert (len(plan.kept), len(plan.dropped)) == (14_018, 1_952)
    assert plan.unknown == ()
    readelf = program("readelf")
    numbers: Counter[tuple[bool, int]] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".cubin")]
        assert set(names) == set(plan.kept) | set(plan.dropped)
        for name in names[::97]:
            path = tmp_path / "one.cubin"
            path.write_bytes(archive.read(name))
            said = subprocess.run([readelf, "-hW", path], capture_output=True, text=True, check=True).stdout
            flags = int(re.search(r"Flags: +(0x[0-9a-f]+)", said)[1], 16)  # type: ignore[index]
            numbers[name in plan.dropped, flags >> 8 & 0xFF] += 1
    assert set(numbers) == {(False, 100), (True, 103)}


def test_flashinfer_has_nothing_for_other_devices(real_wheel: Callable[[str], Path]) -> None:
    plan = planned(real_wheel("flashinfer-cubin"), "sm_90")
    assert plan.served == frozenset()
    assert plan.kept == {}
