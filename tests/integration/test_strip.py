"""``--strip``: what is not loaded goes, what is loaded stays where it is and what it is."""

from __future__ import annotations

import functools
import re
import struct
from typing import TYPE_CHECKING

import pytest

from builders import elf, fatbin
from builders.elf_edit import ElfEdit
from builders.library import CudaLibrary
from corpus.recipes import RECIPES
from integration.memory import check_same_memory
from integration.pruning import Pruned, check_registered, prune, same_file
from judges import binutils, readelf
from judges.programs import must, program, run
from wheelslim.elf.strip import StripMode
from wheelslim.slim import LibraryOptions, Method

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.loader import Loader

SOURCE = """
struct pair { int first, second; };
static struct pair pairs[3] = {{1, 2}, {3, 4}, {5, 6}};
static __attribute__((noinline)) int hidden(int n) { return pairs[n].first * pairs[n].second; }
__attribute__((visibility("default"))) int answer(void) { return hidden(0) + hidden(1) + hidden(2) - 2; }
"""
EVERYTHING = " ".join(["sm_75 sm_80 sm_86 sm_89 sm_90a sm_100a sm_103 sm_120 sm_121a"])

BUILDS = {
    "debug": ("-g3",),
    "without": ("-s",),
    "compressed": ("-g", "-gz"),
    "dwarf4": ("-g", "-gdwarf-4", "-fdebug-types-section"),
    "annotated": ("-g", "-Wl,--build-id=sha1"),
    "emitted relocations": ("-g", "-Wl,--emit-relocs"),
    "gold": ("-g", "-fuse-ld=gold"),
    "gold index": ("-g", "-fuse-ld=gold", "-Wl,--gdb-index", "-ggnu-pubnames"),
    "lld": ("-g", "-fuse-ld=lld"),
    "one segment": ("-g", "-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=0x200000"),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile a library of BUILDS once."""
    return functools.cache(lambda build: built(tmp_path_factory.mktemp("build"), *BUILDS[build]))


def built(tmp_path: Path, *options: str) -> Path:
    (tmp_path / "answer.c").write_text(SOURCE)
    library = tmp_path / "libanswer.so"
    gcc = [program("gcc"), "-O1", "-shared", "-fPIC", *options]
    must([*gcc, str(tmp_path / "answer.c"), "-o", str(library)])
    return library


def stripped(library: Path, target: Path, mode: StripMode = StripMode.ALL) -> Pruned:
    return prune(library, target, EVERYTHING, LibraryOptions(strip=mode), ptx="all")


def names(library: Path) -> set[str]:
    return {section.name for section in readelf.read(library).sections if section.type != "NULL"}


def symbols(library: Path, *options: str) -> list[str]:
    """What ``nm`` lists."""
    return sorted(run([program("nm"), *options, str(library)]).stdout.splitlines())


def build_id(library: Path) -> str:
    found = re.search("Build ID: (.*)", must([program("readelf"), "-n", str(library)]))
    assert found
    return found[1]


@pytest.mark.parametrize("mode", [StripMode.ALL, StripMode.DEBUG], ids=lambda mode: mode.value)
@pytest.mark.parametrize("build", BUILDS)
def test_every_address_holds_the_same_byte(
    build: str, mode: StripMode, compiled: Callable[[str], Path], loader: Loader, tmp_path: Path
) -> None:
    library = compiled(build)
    pruned = stripped(library, tmp_path / "stripped.so", mode)
    assert check_same_memory(library, pruned.path) > 1500
    readelf.sound(pruned.path)
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}
    assert symbols(pruned.path, "-D") == symbols(library, "-D")
    assert build_id(pruned.path) == build_id(library)
    assert not stripped(pruned.path, tmp_path / "again.so", mode).changed


@pytest.mark.parametrize("build", BUILDS)
def test_all_that_is_not_loaded_goes(build: str, compiled: Callable[[str], Path], tmp_path: Path) -> None:
    library = compiled(build)
    pruned = stripped(library, tmp_path / "stripped.so")
    left = [section for section in readelf.read(pruned.path).sections if "A" not in section.flags]
    assert {section.name for section in left if section.type != "NULL"} == {".shstrtab"}
    assert ", stripped" in must([program("file"), str(pruned.path)])
    reference = binutils.strip(library, tmp_path / "reference.so")
    assert pruned.account.size_after <= reference.stat().st_size + 64
    assert pruned.account.method is Method.CUT


@pytest.mark.parametrize("build", [name for name in BUILDS if name != "without"])
def test_debug_mode_keeps_the_symbols(build: str, compiled: Callable[[str], Path], tmp_path: Path) -> None:
    library = compiled(build)
    pruned = stripped(library, tmp_path / "stripped.so", StripMode.DEBUG)
    assert symbols(pruned.path) == symbols(library)
    assert any("t hidden" in line for line in symbols(pruned.path))
    assert not any(".debug" in name or name == ".gdb_index" for name in names(pruned.path))
    assert "not stripped" in must([program("file"), str(pruned.path)])
    table = must([program("readelf"), "-sW", str(pruned.path)])
    count = len(readelf.read(pruned.path).sections)
    places = [int(place) for place in re.findall(r"(?:DEFAULT|HIDDEN) +(\d+) ", table)]
    assert places
    assert max(places) < count


@pytest.mark.parametrize("mode", [StripMode.ALL, StripMode.DEBUG], ids=lambda mode: mode.value)
@pytest.mark.parametrize("build", BUILDS)
def test_tools_afterwards(
    build: str, mode: StripMode, compiled: Callable[[str], Path], loader: Loader, tmp_path: Path
) -> None:
    library = compiled(build)
    pruned = stripped(library, tmp_path / "stripped.so", mode)
    again = binutils.strip(pruned.path, tmp_path / "again.so")
    patched = binutils.patchelf(pruned.path, tmp_path / "patched.so")
    both = binutils.strip(patched, tmp_path / "both.so")
    for path in (again, patched, both):
        readelf.sound(path)
        assert loader.load(path, "answer").values == {"answer": "42"}
        # Letters of sections aside: strip leaves .dynsym pointing at the sections' old numbers.
        assert [line.split()[-1] for line in symbols(path, "-D")] == [
            line.split()[-1] for line in symbols(library, "-D")
        ]
    assert symbols(again, "-D") == symbols(library, "-D") == symbols(patched, "-D")


def test_a_separate_debug_file_still_belongs_to_the_library(tmp_path: Path) -> None:
    library = built(tmp_path, "-g")
    debug = binutils.objcopy(library, tmp_path / "libanswer.debug", "--only-keep-debug")
    linked = binutils.objcopy(library, tmp_path / "linked.so", f"--add-gnu-debuglink={debug}")
    pruned = stripped(linked, tmp_path / "stripped.so")
    assert ".gnu_debuglink" in names(pruned.path)
    gdb = [program("gdb"), "-nx", "-batch", "-iex", "set debuginfod enabled off"]
    said = must([*gdb, "-ex", "info line hidden", str(pruned.path)])
    assert "Line 4 of" in said
    added = binutils.objcopy(
        stripped(library, tmp_path / "plain.so").path, tmp_path / "added.so", f"--add-gnu-debuglink={debug}"
    )
    assert "Line 4 of" in must([*gdb, "-ex", "info line hidden", str(added)])


def test_a_separate_debug_file_itself_is_left_alone(tmp_path: Path) -> None:
    library = built(tmp_path, "-g")
    debug = binutils.objcopy(library, tmp_path / "libanswer.debug", "--only-keep-debug")
    pruned = stripped(debug, tmp_path / "stripped.debug")
    assert not pruned.changed
    assert "separate debug file" in pruned.account.notes[0]


def test_an_object_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "answer.c").write_text(SOURCE)
    must([program("gcc"), "-g", "-c", str(tmp_path / "answer.c"), "-o", str(tmp_path / "answer.o")])
    pruned = stripped(tmp_path / "answer.o", tmp_path / "stripped.o")
    assert not pruned.changed
    assert same_file(pruned.path, tmp_path / "answer.o")


@pytest.mark.parametrize("name", [".BTF", ".ctf", ".my_data", ".rustc"])
def test_sections_of_unknown_names_stay_and_are_named(name: str, loader: Loader, tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(b"who knows" * 99)
    library = built(tmp_path, "-g")
    extended = binutils.objcopy(
        library, tmp_path / "extended.so", f"--add-section={name}={tmp_path / 'content'}"
    )
    pruned = stripped(extended, tmp_path / "stripped.so")
    assert pruned.account.notes == (f"kept, though not loaded: {name}",)
    section = readelf.sound(pruned.path).section(name)
    assert pruned.path.read_bytes()[section.offset :][: section.size] == b"who knows" * 99
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}


def test_probes_of_tracing_tools_stay(tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(struct.pack("<III8s8s", 8, 8, 3, b"stapsdt\0", b"probe\0\0\0"))
    library = built(tmp_path, "-g")
    option = f"--add-section=.note.stapsdt={tmp_path / 'content'}"
    extended = binutils.objcopy(library, tmp_path / "extended.so", option)
    pruned = stripped(extended, tmp_path / "stripped.so")
    assert ".note.stapsdt" in names(pruned.path)
    assert pruned.account.notes == ()


def test_loaded_bytes_that_claim_to_be_symbols_stay(tmp_path: Path) -> None:
    """A finding of the fuzzer: the numbers of sections in them were brought up to date."""
    edit = ElfEdit(CudaLibrary((fatbin.container(["sm_86", "sm_90"]),), symbols=True).build().data)
    edit.section(".rodata", type=elf.SHT_SYMTAB, entsize=24)
    edit.put(edit.section_field(".rodata", "offset"), bytes(range(1, 97)))
    (tmp_path / "odd.so").write_bytes(edit.built())
    pruned = stripped(tmp_path / "odd.so", tmp_path / "stripped.so")
    check_same_memory(tmp_path / "odd.so", pruned.path)


def test_bytes_behind_the_file_keep_their_place(loader: Loader, tmp_path: Path) -> None:
    """Self-extracting programs look for their data there."""
    library = built(tmp_path, "-g")
    payload = b"payload" * 100
    library.write_bytes(library.read_bytes() + payload)
    pruned = stripped(library, tmp_path / "stripped.so")
    assert not pruned.changed
    assert "bytes behind its last section" in pruned.account.notes[0]
    assert loader.load(library, "answer").values == {"answer": "42"}


def test_one_byte_too_many_as_old_patchelf_leaves_it_is_no_payload(tmp_path: Path) -> None:
    library = built(tmp_path, "-g")
    library.write_bytes(library.read_bytes() + b"\0")
    assert stripped(library, tmp_path / "stripped.so").changed


@pytest.mark.parametrize("mode", [StripMode.ALL, StripMode.DEBUG], ids=lambda mode: mode.value)
def test_a_patched_library_keeps_the_numbers_of_its_sections(
    mode: StripMode, loader: Loader, tmp_path: Path
) -> None:
    """Patchelf moves loaded sections behind the symbols; the headers between become inactive."""
    library = binutils.patchelf(built(tmp_path, "-g"), tmp_path / "patched.so")
    pruned = stripped(library, tmp_path / "stripped.so", mode)
    check_same_memory(library, pruned.path)
    assert loader.load(pruned.path, "answer").values == {"answer": "42"}
    numbered = {
        section.name: section.index for section in readelf.read(library).sections if section.type != "NULL"
    }
    for section in readelf.sound(pruned.path).sections:
        if section.type != "NULL" and "A" in section.flags:
            assert section.index == numbered[section.name]
    again = binutils.patchelf(pruned.path, tmp_path / "again.so", "--set-rpath", "/opt/" + "longer/" * 200)
    readelf.sound(again)
    assert loader.load(again, "answer").values == {"answer": "42"}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_pruned_and_stripped_at_once(
    recipe: object, corpus: Callable[[str], Path], loader: Loader, tmp_path: Path
) -> None:
    library: Path = recipe.path  # type: ignore[attr-defined]
    pruned = prune(library, tmp_path / "both.so", "sm_90", LibraryOptions(strip=StripMode.ALL))
    readelf.sound(pruned.path)
    before, after = loader.load(library, "answer"), loader.load(pruned.path, "answer")
    assert after.values == before.values
    check_registered(before.registered, after.registered, [90])
    only_pruned = prune(library, tmp_path / "pruned.so", "sm_90")
    then_stripped = prune(
        only_pruned.path, tmp_path / "then.so", "sm_90", LibraryOptions(strip=StripMode.ALL)
    )
    assert pruned.account.size_after <= then_stripped.account.size_after + 64
    check_registered(after.registered, loader.load(then_stripped.path, "answer").registered, [90])
