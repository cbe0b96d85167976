"""``--embedded``: containers outside nvcc's sections, pruned where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders import fatbin
from builders.library import BuiltLibrary, CudaLibrary, Embedded
from builders.machine import AARCH64
from integration.memory import Memory, check_same_memory
from integration.pruning import prune
from judges import binutils, readelf
from judges.programs import must, program
from wheelslim.elf.strip import StripMode
from wheelslim.slim import LibraryOptions, Method

if TYPE_CHECKING:
    from pathlib import Path

    from judges.loader import Loader

OPTIONS = LibraryOptions(embedded=True)
SECTIONS = (".rodata", ".cask_resource", ".data", ".lrodata", ".ldata")
CONTENTS = (
    ("sm_90", "sm_100"),
    ("sm_80",),
    ("sm_100",),
    ("sm_120",),
    ("sm_86", "sm_90", "compute_90"),
    ("sm_100f",),
    ("compute_75",),
)
KEPT = {  # for sm_86
    ("sm_80",): ("sm_80",),
    ("sm_86", "sm_90", "compute_90"): ("sm_86",),
    ("compute_75",): ("compute_75",),
}
PEEK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    struct link_map *map;
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map)) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    unsigned char *p = (unsigned char *)map->l_addr + strtoull(argv[2], 0, 0);
    for (unsigned long long i = 0, n = strtoull(argv[3], 0, 0); i < n; i++) printf("%02x", p[i]);
    return 0;
}
"""


def entry(word: str, number: int, size: int) -> fatbin.Entry:
    return fatbin.entry(word, size=size, seed=(number, word))


def contents(size: int, words: tuple[tuple[str, ...], ...] = CONTENTS) -> tuple[bytes, ...]:
    return tuple(
        fatbin.container([entry(word, number, size) for word in one]) for number, one in enumerate(words)
    )


def library(section: str, size: int = 60_000, *, gap: int = 24, **fields: object) -> CudaLibrary:
    inside = Embedded(section, contents(size), gap=gap, pointers=True)
    usual: dict[str, object] = {"containers": contents(9_000), "embedded": (inside,), "exports": 40}
    return CudaLibrary(**(usual | fields))  # type: ignore[arg-type]


def write(made: BuiltLibrary, tmp_path: Path) -> Path:
    path = tmp_path / "original.so"
    path.write_bytes(made.data)
    return path


def expected(number: int, size: int) -> bytes:
    """What lies at a container's address for sm_86: the kept entries, then zeros; or zeros alone."""
    whole = len(contents(size)[number])
    kept = KEPT.get(CONTENTS[number])
    made = fatbin.container([entry(word, number, size) for word in kept]) if kept else b""
    return made.ljust(whole, b"\0")


def check(made: BuiltLibrary, original: Path, pruned: Path, section: str, size: int) -> None:
    """The containers hold what sm_86 runs, at their old addresses, and all other data is the same."""
    memory = Memory(pruned)
    ranges = [(address, len(expected(number, size))) for number, address in enumerate(made.embedded[section])]
    for number, (address, length) in enumerate(ranges):
        assert memory.read(address, length) == expected(number, size)
    fatbins = (made.layout.address[".nv_fatbin"], made.layout.size[".nv_fatbin"])
    moved = [
        (made.layout.address[name], made.layout.size[name]) for name in MOVABLE if name in made.layout.size
    ]
    changed = [(made.layout.address[name], made.layout.size[name]) for name in RETARGETED]
    check_same_memory(original, pruned, [*ranges, fatbins, *moved, *changed])


MOVABLE = (".note.gnu.build-id", ".gnu.hash", ".hash", ".dynstr", ".dynsym")
RETARGETED = (".rela.dyn", ".nvFatBinSegment", ".dynamic")


@pytest.mark.parametrize("size", [200, 60_000])
@pytest.mark.parametrize("section", SECTIONS)
def test_containers_keep_their_place_and_what_the_target_runs(
    section: str, size: int, loader: Loader, tmp_path: Path
) -> None:
    made = library(section, size).build()
    original = write(made, tmp_path)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", OPTIONS)
    readelf.sound(pruned.path)
    check(made, original, pruned.path, section, size)
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}
    account = pruned.account.embedded
    assert account is not None
    assert (account.containers, account.emptied) == (7, 4)
    assert {label: share.entries for label, share in account.after.items()} == {
        "sm_80": 1,
        "sm_86": 1,
        "compute_75": 1,
    }
    assert any("try it on your GPU" in note for note in pruned.account.notes)
    assert not prune(pruned.path, tmp_path / "twice.so", "sm_86", OPTIONS).changed


@pytest.mark.parametrize("section", SECTIONS)
def test_freed_pages_leave_the_file_and_stay_readable(section: str, loader: Loader, tmp_path: Path) -> None:
    made = library(section).build()
    original = write(made, tmp_path)
    without = prune(original, tmp_path / "without.so", "sm_86")
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", OPTIONS)
    # Runs: container 0; 2 and 3 with host bytes between; the tail of 4 and, behind host bytes, 5.
    assert without.account.size_after - pruned.account.size_after > 3 * 0x10000
    assert pruned.account.method is Method.CUT
    (tmp_path / "peek.c").write_text(PEEK)
    peek = tmp_path / "peek"
    must([program("gcc"), str(tmp_path / "peek.c"), "-o", str(peek), "-ldl"])
    environment = {"LD_LIBRARY_PATH": str(loader.directory)}
    for number, address in enumerate(made.embedded[section]):
        want = expected(number, 60_000)
        said = must([str(peek), str(pruned.path), hex(address), str(len(want))], env=environment)
        assert bytes.fromhex(said) == want


@pytest.mark.parametrize("section", SECTIONS)
def test_no_hole_is_executable(section: str, tmp_path: Path) -> None:
    made = library(section, one_segment=True, align=0x200000).build()
    pruned = prune(write(made, tmp_path), tmp_path / "pruned.so", "sm_86", OPTIONS)
    for load in readelf.sound(pruned.path).loads:
        assert load.memory_size == load.file_size or "E" not in load.flags


@pytest.mark.parametrize("fields", [{}, {"one_segment": True, "align": 0x200000}, {"gap": 0}], ids=str)
@pytest.mark.parametrize("section", SECTIONS)
def test_tools_afterwards(section: str, fields: dict[str, object], loader: Loader, tmp_path: Path) -> None:
    made = library(section, **fields).build()  # type: ignore[arg-type]
    original = write(made, tmp_path)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", OPTIONS)
    stripped = binutils.strip(pruned.path, tmp_path / "stripped.so")
    patched = binutils.patchelf(pruned.path, tmp_path / "patched.so")
    both = binutils.strip(patched, tmp_path / "both.so")
    for path in (stripped, patched, both):
        readelf.sound(path)
        memory = Memory(path)
        for number, address in enumerate(made.embedded[section]):
            want = expected(number, 60_000)
            assert memory.read(address, len(want)) == want
        assert loader.load(path, "answer").values == {"answer": "42"}
    assert stripped.stat().st_size <= pruned.path.stat().st_size + 4096


@pytest.mark.parametrize("section", SECTIONS)
def test_padding_joins_runs_and_host_bytes_part_them(section: str, tmp_path: Path) -> None:
    """Containers of 120 KiB, all for another device: one hole without host bytes between, else seven."""
    one = tuple(fatbin.container([entry("sm_100", number, 120_000)]) for number in range(7))
    for gap, holes in ((0, 1), (24, 7)):
        made = CudaLibrary(contents(200), embedded=(Embedded(section, one, gap=gap),), exports=60).build()
        pruned = prune(write(made, tmp_path), tmp_path / "pruned.so", "sm_86", OPTIONS)
        parts = [part for part in readelf.sound(pruned.path).sections if part.name == section]
        assert sum(part.type == "NOBITS" for part in parts) == holes
        assert pruned.account.size_before - pruned.account.size_after > 7 * 110_000


def test_too_many_holes_for_the_program_headers_leave_zeros(loader: Loader, tmp_path: Path) -> None:
    one = tuple(fatbin.container([entry("sm_100", number, 120_000)]) for number in range(12))
    made = CudaLibrary(contents(200), embedded=(Embedded(".ldata", one),), exports=8).build()
    original = write(made, tmp_path)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", OPTIONS)
    assert "freed runs stay in the file as zeros" in pruned.account.notes[0]
    memory = Memory(pruned.path)
    for data, address in zip(one, made.embedded[".ldata"], strict=True):
        assert memory.read(address, len(data)) == bytes(len(data))
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}


def test_aarch64(loader_aarch64: Loader, tmp_path: Path) -> None:
    made = library(".ldata", 200_000, machine=AARCH64).build()
    original = write(made, tmp_path)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", OPTIONS)
    readelf.sound(pruned.path)
    check(made, original, pruned.path, ".ldata", 200_000)
    assert loader_aarch64.load(pruned.path, "answer").values == {"answer": "42"}
    stripped = binutils.strip(pruned.path, tmp_path / "stripped.so", prefix="aarch64-linux-gnu-")
    assert loader_aarch64.load(stripped, "answer").values == {"answer": "42"}


def test_without_the_option_they_are_left_alone(tmp_path: Path) -> None:
    made = library(".ldata").build()
    original = write(made, tmp_path)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86")
    memory = Memory(pruned.path)
    for data, address in zip(contents(60_000), made.embedded[".ldata"], strict=True):
        assert memory.read(address, len(data)) == data
    assert pruned.account.embedded is None


def test_a_library_with_nothing_else_is_pruned_too(tmp_path: Path) -> None:
    made = library(".cask_resource", containers=(fatbin.container(["sm_86"]),)).build()
    pruned = prune(write(made, tmp_path), tmp_path / "pruned.so", "sm_86", OPTIONS)
    assert pruned.changed
    assert pruned.account.size_before - pruned.account.size_after > 3 * 0x10000


@pytest.mark.parametrize("strip", [StripMode.NONE, StripMode.ALL])
def test_tables_that_make_way_are_found_where_all_device_code_is_embedded(
    strip: StripMode, loader: Loader, tmp_path: Path
) -> None:
    """No container in ``.nv_fatbin`` at all, and the hash and symbol tables move: DT_GNU_HASH must follow."""
    made = library(".ldata", containers=(), exports=8).build()
    original = write(made, tmp_path)
    options = LibraryOptions(embedded=True, strip=strip)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", options)
    before, after = (readelf.read(path).section(".gnu.hash").address for path in (original, pruned.path))
    assert before != after
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}


def test_a_library_with_nothing_in_nvccs_sections(loader: Loader, tmp_path: Path) -> None:
    """Tables that make way for program headers must still be found through the dynamic tags."""
    made = library(".cask_resource", containers=()).build()
    original = write(made, tmp_path)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", OPTIONS)
    readelf.sound(pruned.path)
    assert pruned.account.size_before - pruned.account.size_after > 3 * 0x10000
    assert readelf.read(pruned.path).section(".gnu.hash").address != made.layout.address[".gnu.hash"]
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}


def test_together_with_strip(loader: Loader, tmp_path: Path) -> None:
    made = library(".ldata").build()
    original = write(made, tmp_path)
    options = LibraryOptions(embedded=True, strip=StripMode.ALL)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", options)
    readelf.sound(pruned.path)
    check(made, original, pruned.path, ".ldata", 60_000)
    assert {s.name for s in readelf.read(pruned.path).sections if "A" not in s.flags} <= {"", ".shstrtab"}
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}


def test_where_nothing_can_be_cut_they_are_pruned_in_place(tmp_path: Path) -> None:
    made = library(".ldata").build()
    original = write(made, tmp_path)
    original.write_bytes(made.data + b"payload" * 100)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86", OPTIONS)
    assert pruned.account.method is Method.IN_PLACE
    memory = Memory(pruned.path)
    for number, address in enumerate(made.embedded[".ldata"]):
        assert memory.read(address, len(expected(number, 60_000))) == expected(number, 60_000)
