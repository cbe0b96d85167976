"""Kernels of real libraries, as cuobjdump lists them and c++filt spells them."""

from __future__ import annotations

import re
import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from judges.programs import must, program
from wheelslim.kernels.filter import judge
from wheelslim.kernels.rules import KernelRules
from wheelslim.kernels.survey import survey_library
from wheelslim.kernels.used import UsedKernels
from wheelslim.plan import Planner, Request
from wheelslim.source import Source
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump

pytestmark = pytest.mark.real

LIBRARIES = [
    ("torchvision", "torchvision/_C_stable.so", "sm_90"),
    ("cupy-cuda13x", "cupy/cuda/thrust.cpython-311-x86_64-linux-gnu.so", "sm_80"),
    ("cupy-cuda13x", "cupy/cuda/cub.cpython-311-x86_64-linux-gnu.so", "sm_120"),
]


@pytest.mark.parametrize("case", LIBRARIES, ids=[member for _, member, _ in LIBRARIES])
def test_profilers_names_are_found_again(
    case: tuple[str, str, str], real_wheel: Callable[[str], Path], cuobjdump: Cuobjdump, tmp_path: Path
) -> None:
    key, member, word = case
    with zipfile.ZipFile(real_wheel(key)) as archive:
        library = archive.extract(member, tmp_path)
    said = must([str(cuobjdump.program), "-symbols", "-all", "-arch", word, library])
    listed = set(re.findall(r"^FUNC +\w+ +\w+ +ENTRY +(\S+)$", said, re.MULTILINE))
    with open(library, "rb") as file:  # noqa: PTH123 - a name from zipfile
        survey = survey_library(Source.of_file(file.fileno()), Planner(Request(parse_targets(word))))
    assert set(survey.demangled) == listed
    # As the PyTorch profiler spells them: libstdc++'s demangler.
    chosen = sorted(listed)[::7]
    done = subprocess.run(
        [program("c++filt")], input="\n".join(chosen), capture_output=True, text=True, check=True
    )
    used = UsedKernels(frozenset(done.stdout.splitlines()))
    found = used.among(survey.demangled)
    assert set(chosen) <= found
    verdict = judge(survey, member, KernelRules(used=used))
    for one in survey.containers:
        if one.kernels and not set(one.kernels).isdisjoint(chosen):
            assert one.position not in verdict.positions
