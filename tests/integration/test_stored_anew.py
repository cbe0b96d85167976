"""Libraries whose device code is stored anew or emptied: judged by cuobjdump, the loader and a spy."""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from corpus.recipes import BY_NAME
from integration.pruning import prune
from judges import binutils
from judges.programs import must
from wheelslim.architecture import ComputeCapability
from wheelslim.container_rewrite import ContainerRewriter
from wheelslim.errors import VerifyError
from wheelslim.kernels.filter import judge_library
from wheelslim.kernels.rules import KernelRules, compile_patterns
from wheelslim.plan import Planner, Request
from wheelslim.proof.declared import Declared
from wheelslim.proof.library import verify_library
from wheelslim.slim import LibraryOptions
from wheelslim.source import Source
from wheelslim.spool import SpoolFile
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump
    from judges.loader import Loader

ZSTD, LZ4 = 0x8000, 0x2000


@pytest.fixture
def recompressing() -> Iterator[Callable[[str], LibraryOptions]]:
    """Options that recompress, for the targets in ``words``."""
    with SpoolFile() as spool:
        yield lambda words: LibraryOptions(
            rewrite=ContainerRewriter(Request(parse_targets(words)), spool, recompress=True).rewrite
        )


@pytest.mark.parametrize("name", ["plain", "lz4", "many_archs", "rdc", "lld_2m", "patchelf_2m", "relr"])
def test_recompressed_libraries_hold_the_same_cubins(
    name: str,
    cuobjdump: Cuobjdump,
    loader: Loader,
    recompressing: Callable[[str], LibraryOptions],
    tmp_path: Path,
) -> None:
    words, library = "sm_86 sm_90", BY_NAME[name].path
    usual = prune(library, tmp_path / "usual.so", words)
    smaller = prune(library, tmp_path / "smaller.so", words, recompressing(words))
    assert cuobjdump.cubins(smaller.path) == cuobjdump.cubins(usual.path)
    check_proof(library, smaller.path, Declared(stored_anew=True))
    loaded = loader.load(smaller.path, "answer")
    assert loaded.values == {"answer": "42"}
    for old, new in zip(loader.load(usual.path).registered, loaded.registered, strict=True):
        assert [(e.kind, e.sm) for e in new.entries] == [(e.kind, e.sm) for e in old.entries]
        for entry in new.entries:
            assert entry.flags & ZSTD
            assert not entry.flags & LZ4
    stripped = binutils.strip(smaller.path, tmp_path / "stripped.so")
    patched = binutils.patchelf(stripped, tmp_path / "patched.so")
    again = loader.load(patched, "answer").registered
    assert [(one.entries, one.prelinked) for one in again] == [
        (one.entries, one.prelinked) for one in loaded.registered
    ]


def test_a_library_of_zstd_entries_is_not_touched(
    corpus: Callable[[str], Path], recompressing: Callable[[str], LibraryOptions], tmp_path: Path
) -> None:
    words = "sm_86"
    usual = prune(corpus("zstd"), tmp_path / "usual.so", words)
    again = prune(corpus("zstd"), tmp_path / "again.so", words, recompressing(words))
    assert again.path.read_bytes() == usual.path.read_bytes()


def test_emptied_containers_are_gone_and_the_others_as_they_were(
    corpus: Callable[[str], Path], cuobjdump: Cuobjdump, loader: Loader, tmp_path: Path
) -> None:
    """Kernels 10 to 39 go, each alone in its container; 0 to 9 stay."""
    words, library = "sm_86", corpus("many_containers")
    with library.open("rb") as file:
        source = Source.of_file(file.fileno())
        rules = KernelRules(drop=compile_patterns([r"^kernel_[123]\d\("]))
        verdict = judge_library(source, library.name, Planner(Request(parse_targets(words))), rules)
    usual = prune(library, tmp_path / "usual.so", words)
    emptied = prune(library, tmp_path / "emptied.so", words, LibraryOptions(veto=verdict.veto))
    before, after = symbols(cuobjdump, usual.path), symbols(cuobjdump, emptied.path)
    assert {name for name in before if re.search(r"kernel_[123]\dPf", name)} == before - after
    assert len(before - after) == verdict.account.emptied == verdict.account.kernels_gone == 30
    assert verdict.account.operators == tuple(sorted(f"kernel_{number}" for number in range(10, 40)))
    check_proof(library, emptied.path, Declared(emptied=verdict.offsets), [86])
    some = frozenset(sorted(verdict.offsets)[1:])
    with pytest.raises(VerifyError), sources(library, emptied.path) as (old_source, new_source):
        verify_library(old_source, new_source, [ComputeCapability(8, 6)], Declared(emptied=some))
    loaded = loader.load(emptied.path, "answer")
    assert loaded.values == {"answer": "42"}
    for old, new in zip(loader.load(usual.path).registered, loaded.registered, strict=True):
        assert new.entries in ((), old.entries)
    assert sum(not one.entries for one in loaded.registered) == 30


def check_proof(library: Path, slimmed: Path, declared: Declared, numbers: Sequence[int] = (86, 90)) -> None:
    """The change is proved where it is declared, and refused where it is not."""
    devices = [ComputeCapability.of_number(number) for number in numbers]
    with sources(library, slimmed) as (before, after):
        verify_library(before, after, devices, declared)
        with pytest.raises(VerifyError):
            verify_library(before, after, devices)


@contextmanager
def sources(*paths: Path) -> Iterator[tuple[Source, ...]]:
    with ExitStack() as stack:
        yield tuple(Source.of_file(stack.enter_context(path.open("rb")).fileno()) for path in paths)


def symbols(cuobjdump: Cuobjdump, path: Path) -> set[str]:
    said = must([str(cuobjdump.program), "-symbols", "-all", str(path)])
    return set(re.findall(r"^FUNC +\w+ +\w+ +ENTRY +(\S+)$", said, re.MULTILINE))
