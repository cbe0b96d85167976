"""Libraries of a real linker, for x86-64 and AArch64, cut and judged: their pages leave the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders.linked import ONE_SEGMENT, LinkedLibrary
from corpus.recipes import PARTS
from integration.pruning import check_library, check_tools_afterwards, numbers, prune

if TYPE_CHECKING:
    from pathlib import Path

    from judges.loader import Loader

LAYOUTS: dict[str, dict[str, Any]] = {
    "separate_code": {"linker": ("-z", "separate-code")},
    "one_segment": {"linker": ONE_SEGMENT},
    "one_segment_2m": {"linker": (*ONE_SEGMENT, "-z", "max-page-size=0x200000")},
    "executable": {"executable": True},
    "pinned": {"align": 256, "unreferenced": frozenset({0, 3}), "in_code": (0, 3), "linker": ONE_SEGMENT},
}
FREED = 3 * 0x10000
"""Three pages of AArch64: no target here keeps a third of the 390 KB. A pinned container may cost one."""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_pages_leave_the_file_and_the_library_works(
    machine: str, layout: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: Loader = request.getfixturevalue("loader" if machine == "x86_64" else "loader_aarch64")
    containers = ((PARTS / "add.fatbin").read_bytes(), (PARTS / "scale.fatbin").read_bytes()) * 10
    spec = LinkedLibrary(containers, **LAYOUTS[layout])
    library = spec.build(tmp_path / "linked", judge.compiler, judge.runtime)
    for words in ("sm_86", "sm_80 sm_120"):
        pruned = prune(library, tmp_path / "pruned.so", words)
        check_library(library, pruned.path, numbers(words), judge)
        freed = library.stat().st_size - pruned.path.stat().st_size
        assert freed >= FREED - 0x10000 * len(spec.in_code)
        for number in spec.in_code:
            # Code holds this address: a container must still start there.
            loaded = judge.load(pruned.path, f"container_{number}:4")
            assert loaded.values[f"container_{number}"] == "50ed55ba"
    prefix = "" if machine == "x86_64" else "aarch64-linux-gnu-"
    check_tools_afterwards(library, pruned.path, numbers("sm_80 sm_120"), judge, prefix)
