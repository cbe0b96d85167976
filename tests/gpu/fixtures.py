"""Libraries of the corpus on the device: pruned ones compute what the originals do, emptied containers load.

Each runs under both values of CUDA_MODULE_LOADING: EAGER loads every container at the start, an emptied one
included.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpus.recipes import BY_NAME
from integration.pruning import prune
from judges.programs import run
from wheelslim.errors import TargetNeverSupportedError
from wheelslim.library import read_library
from wheelslim.slim import DEFAULT_OPTIONS, LibraryOptions
from wheelslim.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from wheelslim.fatbin.model import Container

LOADING = ("EAGER", "LAZY")
STEPS = ("launch", "finish", "copy")
NO_KERNEL_IMAGE = 209
"""cudaErrorNoKernelImageForDevice."""

FUNCTIONS = {
    "many_archs": ("add", "scale"),
    "plain": ("add", "scale"),
    "zstd": ("add", "scale"),
    "lz4": ("add", "scale"),
    "suffixes": ("add",),
    "ptx_only": ("add", "scale"),
    "rdc": ("twice", "scale"),
    "many_containers": ("add", *(f"launch_{number}" for number in range(0, 40, 13))),
    "relr": ("add", "scale"),
    "lld": ("add", "scale"),
    "one_segment_2m": ("add", "scale"),
    "patchelf_twice": ("add", "scale"),
}


@dataclass(frozen=True)
class Finding:
    """What was seen of one library under one way of loading."""

    library: str
    loading: str
    verdict: str
    detail: str


def check(python: str, cudart: Path, arch: str, scratch: Path) -> list[Finding]:
    """Prune and run all of them."""
    found: list[Finding] = []
    for name, functions in FUNCTIONS.items():
        original = BY_NAME[name].path
        if not _supports(original, arch):
            found.append(Finding(name, "", "not run", f"it has no code for {arch}"))
            continue
        pruned = prune(original, scratch / f"{name}.so", arch).path
        for loading in LOADING:
            before = call(python, cudart, original, functions, loading)
            after = call(python, cudart, pruned, functions, loading)
            found.append(Finding(name, loading, *_verdict(before, after)))
    return [*found, *emptied(python, cudart, arch, scratch)]


def emptied(python: str, cudart: Path, arch: str, scratch: Path) -> list[Finding]:
    """A library whose second unit's container holds nothing: the first unit has to work as ever."""
    original = BY_NAME["many_archs"].path
    with original.open("rb") as file:
        last = read_library(Source.of_file(file.fileno())).containers[-1].offset

    def veto(_: Source, container: Container) -> bool:
        return container.offset == last

    pruned = prune(original, scratch / "emptied.so", arch, LibraryOptions(veto=veto)).path
    found = []
    for loading in LOADING:
        before = call(python, cudart, original, ("add", "scale"), loading)
        after = call(python, cudart, pruned, ("add", "scale"), loading)
        said = (
            f"add as before: {after.get('add') == before.get('add')}; scale: error {_launch(after, 'scale')}"
        )
        if before.get("count"):
            fine = after.get("add") == before.get("add") and _launch(after, "scale") == NO_KERNEL_IMAGE
            found.append(Finding("emptied", loading, "same" if fine else "different", said))
        else:
            verdict = "rehearsed" if _launch(after, "add") == _launch(before, "add") != 0 else "different"
            found.append(Finding("emptied", loading, verdict, said))
    return found


def call(
    python: str, cudart: Path, library: Path, functions: tuple[str, ...], loading: str
) -> dict[str, Any]:
    """Run the child; what it printed, or how it died."""
    script = __file__.replace("fixtures.py", "fixture_calls.py")
    environment = {"CUDA_MODULE_LOADING": loading, "PYTHONPATH": ""}
    done = run([python, script, str(cudart), str(library), *functions], env=environment, timeout=300)
    if done.returncode != 0:
        return {"died": done.returncode, "said": done.stderr[-300:].replace(str(library), "LIBRARY")}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _launch(found: dict[str, Any], function: str) -> object:
    return found.get(function, {}).get("launch", found.get("said"))


def _verdict(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, str]:
    """Judge a library of which all works: the same numbers, and no error unless there is no device."""
    if before != after or "died" in before:
        return "different", f"{before} / {after}"[:600]
    if not before["count"]:
        return "rehearsed", ""
    codes = [one[step] for one in before.values() if isinstance(one, dict) for step in STEPS]
    return ("not run", f"errors {codes} before and after") if any(codes) else ("same", "")


def _supports(library: Path, arch: str) -> bool:
    from wheelslim.pipeline import PruneOptions
    from wheelslim.pipeline import prune as prune_artifact
    from wheelslim.plan import Request
    from wheelslim.targets import parse_targets

    try:
        prune_artifact(library, PruneOptions(Request(parse_targets(arch)), DEFAULT_OPTIONS, dry_run=True))
    except TargetNeverSupportedError:
        return False
    return True
