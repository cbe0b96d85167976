"""Libraries in, shorter libraries out: every layout, judged by readelf, the loader, a spy and cuobjdump."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from builders import fatbin
from builders.library import CudaLibrary
from builders.machine import AARCH64
from corpus.recipes import BY_NAME, RECIPES
from integration.pruning import check_library, check_tools_afterwards, numbers, prune, same_file
from judges import readelf
from wheelslim.slim import Method

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump
    from judges.loader import Loader

NAMES = [recipe.name for recipe in RECIPES]
TARGETS = ["sm_75", "sm_86", "sm_90", "sm_86 sm_120", "sm_103"]

every_library = pytest.mark.parametrize("name", NAMES)
every_target = pytest.mark.parametrize("words", TARGETS)


@every_library
@every_target
def test_the_runtime_gets_the_same_containers_with_what_the_target_runs(
    name: str, words: str, corpus: Callable[[str], Path], loader: Loader, tmp_path: Path
) -> None:
    library = corpus(name)
    pruned = prune(library, tmp_path / f"{name}.so", words)
    check_library(library, pruned.path, numbers(words), loader)
    if not pruned.changed:
        assert same_file(library, pruned.path)


@every_library
def test_strip_and_patchelf_leave_a_working_library(
    name: str, corpus: Callable[[str], Path], loader: Loader, tmp_path: Path
) -> None:
    pruned = prune(corpus(name), tmp_path / f"{name}.so", "sm_90")
    check_tools_afterwards(corpus(name), pruned.path, [90], loader)


@every_library
@every_target
def test_pruning_twice_is_pruning_once(
    name: str, words: str, corpus: Callable[[str], Path], tmp_path: Path
) -> None:
    once = prune(corpus(name), tmp_path / "once.so", words)
    twice = prune(once.path, tmp_path / "twice.so", words)
    assert not twice.changed
    assert twice.account.before == once.account.after


@every_library
def test_a_target_for_everything_changes_nothing(
    name: str, corpus: Callable[[str], Path], tmp_path: Path
) -> None:
    words = " ".join(code for code in BY_NAME[name].codes if not code.startswith("lto"))
    pruned = prune(corpus(name), tmp_path / "same.so", words, ptx="all")
    assert not pruned.changed
    assert pruned.account.method is Method.NONE


@every_library
def test_cuobjdump_finds_exactly_the_planned_code(
    name: str, corpus: Callable[[str], Path], cuobjdump: Cuobjdump, tmp_path: Path
) -> None:
    before = cuobjdump.cubins(corpus(name))
    pruned = prune(corpus(name), tmp_path / f"{name}.so", "sm_86 sm_103")
    after = cuobjdump.cubins(pruned.path)
    assert after <= before
    planned: Counter[str] = Counter()
    for label, share in pruned.account.after.items():
        if not label.startswith("lto"):
            planned[re.sub("[af]$", "", label) if label.startswith("sm") else label] += share.entries
    found: Counter[str] = Counter()
    for (word, _), count in after.items():
        found[re.sub("[af]$", "", word) if word.startswith("sm") else word] += count
    assert found == planned


@pytest.mark.parametrize("name", ["many_containers", "many_archs", "one_segment_2m", "patchelf_rpath", "lld"])
def test_the_file_becomes_smaller_by_pages(name: str, corpus: Callable[[str], Path], tmp_path: Path) -> None:
    pruned = prune(corpus(name), tmp_path / f"{name}.so", "sm_90")
    assert pruned.account.method is Method.CUT
    freed = sum(share.size for share in pruned.account.before.values()) - sum(
        share.size for share in pruned.account.after.values()
    )
    saved = pruned.account.size_before - pruned.account.size_after
    assert freed - 3 * 4096 <= saved <= freed + 4096


def big(*words: str, seed: object = 0) -> bytes:
    return fatbin.container([fatbin.entry(word, size=40_000, seed=(seed, word)) for word in words])


def several(count: int) -> tuple[bytes, ...]:
    return tuple(big("sm_80", "sm_86", "sm_90", "compute_90", seed=index) for index in range(count))


LAYOUTS = {
    "plain": CudaLibrary(several(6)),
    "one container": CudaLibrary(several(1)),
    "rx_2m": CudaLibrary(several(6), one_segment=True, align=0x200000),
    "aligned_256": CudaLibrary(several(6), container_align=256),
    "aligned_4096": CudaLibrary(several(6), container_align=4096),
    "last in its segment": CudaLibrary(several(6), tail=0),
    "rx, last in its segment": CudaLibrary(several(6), one_segment=True, tail=0),
    "unreferenced first": CudaLibrary(several(6), unreferenced=frozenset({0})),
    "unreferenced middle": CudaLibrary(several(6), unreferenced=frozenset({3})),
    "unreferenced last": CudaLibrary(several(6), unreferenced=frozenset({5})),
    "all unreferenced": CudaLibrary(several(6), unreferenced=frozenset(range(6)), exports=40),
    "second pointer": CudaLibrary(several(6), pointed=frozenset({1, 4}), exports=40),
    "pointer inside": CudaLibrary(several(6), inside=frozenset({2})),
    "relr": CudaLibrary(several(6), relocations="relr"),
    "relr, pointed": CudaLibrary(several(6), relocations="relr", pointed=frozenset({2})),
    "lld": CudaLibrary(several(6), packed=True, in_place=False, phdr=True),
    "rdc": CudaLibrary(several(3), relocatable=several(4)),
    "sysv hash, no note": CudaLibrary(several(6), hash_style="sysv", note=False),
    "both hashes": CudaLibrary(several(6), hash_style="both"),
    "moved tables": CudaLibrary(several(6), moved_tables=True, headroom=600),
    "moved tables, no headroom": CudaLibrary(several(6), moved_tables=True),
    "headroom": CudaLibrary(several(6), headroom=1000),
    "no symbols": CudaLibrary(several(6), symbols=False),
    "phdr": CudaLibrary(several(6), phdr=True),
    "everything": CudaLibrary(
        several(8),
        relocatable=several(3),
        one_segment=True,
        align=0x200000,
        container_align=256,
        unreferenced=frozenset({2}),
        pointed=frozenset({5}),
        phdr=True,
        hash_style="both",
        exports=40,
    ),
}
WORDS = ["sm_86", "sm_90", "sm_100", "sm_75"]


def written(layout: str, tmp_path: Path) -> Path:
    path = tmp_path / "original.so"
    path.write_bytes(LAYOUTS[layout].build().data)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, words: str, loader: Loader, tmp_path: Path) -> None:
    original = written(layout, tmp_path)
    pruned = prune(original, tmp_path / "pruned.so", words)
    check_library(original, pruned.path, numbers(words), loader)
    assert not prune(pruned.path, tmp_path / "twice.so", words).changed
    assert pruned.account.method is Method.CUT
    assert pruned.account.notes == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tools_afterwards(layout: str, loader: Loader, tmp_path: Path) -> None:
    original = written(layout, tmp_path)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86")
    check_tools_afterwards(original, pruned.path, [86], loader)


AARCH64_LAYOUTS = {
    "plain": CudaLibrary(several(6), machine=AARCH64),
    "aligned_256": CudaLibrary(several(6), machine=AARCH64, container_align=256, one_segment=True),
    "relr": CudaLibrary(several(6), machine=AARCH64, relocations="relr"),
    "rdc": CudaLibrary(several(3), relocatable=several(4), machine=AARCH64, hash_style="both", note=False),
    "pinned": CudaLibrary(several(8), machine=AARCH64, unreferenced=frozenset({1}), pointed=frozenset({5})),
}


@pytest.mark.parametrize("words", ["sm_90", "sm_75"])
@pytest.mark.parametrize("layout", AARCH64_LAYOUTS)
def test_aarch64(layout: str, words: str, loader_aarch64: Loader, tmp_path: Path) -> None:
    original = tmp_path / "original.so"
    original.write_bytes(AARCH64_LAYOUTS[layout].build().data)
    pruned = prune(original, tmp_path / "pruned.so", words)
    check_library(original, pruned.path, numbers(words), loader_aarch64)
    saved = pruned.account.size_before - pruned.account.size_after
    assert saved
    assert saved % 0x10000 == 0 or saved > 0x10000


@pytest.mark.parametrize("layout", AARCH64_LAYOUTS)
def test_tools_afterwards_aarch64(layout: str, loader_aarch64: Loader, tmp_path: Path) -> None:
    original = tmp_path / "original.so"
    original.write_bytes(AARCH64_LAYOUTS[layout].build().data)
    pruned = prune(original, tmp_path / "pruned.so", "sm_90")
    check_tools_afterwards(original, pruned.path, [90], loader_aarch64, prefix="aarch64-linux-gnu-")


@pytest.mark.parametrize("number", [0, 3])
def test_code_that_holds_the_address_of_a_pinned_container_still_finds_it(
    number: int, loader: Loader, tmp_path: Path
) -> None:
    """A container without a wrapper stays where it is: only code may point at it."""
    made = CudaLibrary(several(5), unreferenced=frozenset({number}), in_code=(number,)).build()
    original = tmp_path / "original.so"
    original.write_bytes(made.data)
    pruned = prune(original, tmp_path / "pruned.so", "sm_90")
    call = f"container_{number}"
    values = loader.load(pruned.path, f"{call}:16").values
    kept = fatbin.entry("sm_90", size=40_000)
    body = kept.header_size + kept.padded_size
    assert values[call] == fatbin.CONTAINER_HEADER.pack(fatbin.CONTAINER_MAGIC, 1, 16, body).hex()


def test_holes_behind_a_pinned_container_stay_readable(loader: Loader, tmp_path: Path) -> None:
    whole = several(5)
    made = CudaLibrary(whole, unreferenced=frozenset({1}), in_code=(1,)).build()
    original = tmp_path / "original.so"
    original.write_bytes(made.data)
    pruned = prune(original, tmp_path / "pruned.so", "sm_90")
    call = f"container_1:{len(whole[1])}"
    read = bytes.fromhex(loader.load(pruned.path, call).values["container_1"])
    kept = fatbin.container([fatbin.entry("sm_90", size=40_000, seed=(1, "sm_90"))])
    assert read == kept.ljust(len(whole[1]), b"\0")
    assert pruned.account.size_before - pruned.account.size_after > 4 * 3 * 40_000 - 10 * 4096
    holes = [load for load in readelf.read(pruned.path).loads if load.file_size < load.memory_size]
    assert [load.flags for load in holes] == ["R", "RW"]


def test_a_library_without_section_headers_is_compacted_in_place_or_left(
    loader: Loader, tmp_path: Path
) -> None:
    original = tmp_path / "original.so"
    original.write_bytes(CudaLibrary(several(3), section_headers=False).build().data)
    pruned = prune(original, tmp_path / "pruned.so", "sm_90")
    assert not pruned.changed
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}
