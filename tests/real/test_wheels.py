"""Real wheels from PyPI, pruned by the command line and judged by programs that are not ours."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from real import verdicts
from real.cases import CASES
from real.pruned import prune, wheelslim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump
    from real.pruned import Pruned

pytestmark = pytest.mark.real

PARAMS = [
    pytest.param(case, id=str(case), marks=() if case.is_small else (pytest.mark.slow,)) for case in CASES
]


@pytest.fixture(scope="module", params=PARAMS)
def pruned(
    request: pytest.FixtureRequest,
    real_wheel: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pruned]:
    """One wheel pruned for one set of targets; its scratch directory goes when its tests are done."""
    case = request.param
    original = real_wheel(case.key)
    scratch = tmp_path_factory.mktemp(case.key)
    yield prune(case.key, case.arch, original, scratch)
    shutil.rmtree(scratch)


@pytest.mark.parametrize("judge", verdicts.JUDGES)
def test_a_judge_accepts_it(pruned: Pruned, judge: str) -> None:
    verdicts.JUDGES[judge](pruned)


def test_cuobjdump_lists_exactly_what_the_rule_keeps(
    pruned: Pruned, cuobjdump: Cuobjdump, older_cuobjdump: Cuobjdump | None
) -> None:
    verdicts.by_cuobjdump(pruned, cuobjdump, older_cuobjdump)


def test_the_same_input_gives_the_same_bytes(pruned: Pruned, tmp_path: Path) -> None:
    again = prune(pruned.key, pruned.arch, pruned.original, tmp_path, "--jobs", "1")
    assert again.wheel.name == pruned.wheel.name
    assert again.report["size"] == pruned.report["size"]
    assert _same_bytes(again.wheel, pruned.wheel)
    shutil.rmtree(tmp_path / "slim")


def test_nothing_is_left_to_prune(pruned: Pruned, tmp_path: Path) -> None:
    run = wheelslim(tmp_path, "prune", "-a", pruned.arch, "-o", str(tmp_path / "slim"), str(pruned.wheel))
    assert run.exit_code == 0, run.stderr
    assert "nothing to prune" in run.stdout
    assert list((tmp_path / "slim").glob("*")) == []


def _same_bytes(one: Path, other: Path) -> bool:
    with one.open("rb") as first, other.open("rb") as second:
        while block := first.read(1 << 20):
            if second.read(1 << 20) != block:
                return False
        return not second.read(1)
