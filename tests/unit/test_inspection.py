"""Inspections: what is counted, where it is found, and what they look like as text and JSON."""

from __future__ import annotations

import json
import struct
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from builders import cubin as make_cubin
from builders import elf as make_elf
from builders import fatbin as make
from builders.library import CudaLibrary, Embedded
from builders.wheel import Wheel
from corpus.recipes import BY_NAME, PARTS, RECIPES
from judges.schemas import assert_valid
from wheelslim.account import Share
from wheelslim.contents import ContentKind
from wheelslim.errors import ArtifactError, StorageError
from wheelslim.estimate import estimate, likely_targets
from wheelslim.inspection import Content, inspect
from wheelslim.plan import Planner, Request
from wheelslim.report.inspection_json import inspection_json
from wheelslim.report.inspection_text import Grouping, render_inspection_text
from wheelslim.slim import slim_library
from wheelslim.source import Source
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

    from corpus.recipes import Recipe


@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.name for recipe in RECIPES])
def test_every_library_of_the_corpus_holds_what_its_recipe_says(recipe: Recipe) -> None:
    inspection = inspect(recipe.path)
    (library,) = inspection.libraries
    expected = Counter(code for container in recipe.containers for code in container)
    expected.update(code for _ in range(recipe.linked_units) for code in recipe.codes)
    assert {label: share.entries for label, share in library.architectures.items()} == expected
    containers = sum(section.containers for section in library.code.sections)
    assert containers == len(recipe.containers) + recipe.linked_units
    assert library.size == inspection.size == recipe.path.stat().st_size
    assert_valid(inspection_json(inspection))


def test_sizes_add_up(tmp_path: Path) -> None:
    names = ("rdc", "many_containers", "zstd")
    files = {f"pkg/{name}.so": BY_NAME[name].path.read_bytes() for name in names}
    files |= {
        "pkg/__init__.py": b"x = 1\n",
        "pkg/__pycache__/x.cpython-311.pyc": b"\0" * 10,
        "pkg/include/x.cuh": b"#pragma once\n",
        "pkg/libx.a": b"!<arch>\n" + bytes(20),
        "pkg/data.bin": b"data",
    }
    inspection = inspect(Wheel(files).write(tmp_path))
    parts = sum(library.code.size + library.host for library in inspection.libraries)
    parts += sum(library.code.symbols + library.code.debug for library in inspection.libraries)
    parts += sum(content.size for content in inspection.other.values())
    assert parts == inspection.installed_size
    assert inspection.other[ContentKind.PYTHON] == Content(1, 6)
    assert inspection.other[ContentKind.BYTECODE] == Content(1, 10)
    assert inspection.other[ContentKind.HEADER] == Content(1, 13)
    assert inspection.other[ContentKind.STATIC_LIBRARY] == Content(1, 28)
    assert inspection.other[ContentKind.OTHER].files == 4  # data.bin, METADATA, WHEEL, RECORD
    assert [library.path for library in inspection.with_device_code] == [
        f"pkg/{name}.so" for name in sorted(names, key=lambda name: -len(files[f"pkg/{name}.so"]))
    ]
    assert_valid(inspection_json(inspection))


def test_a_wheel_and_its_tree_and_its_library_say_the_same(tmp_path: Path) -> None:
    data = BY_NAME["suffixes"].path.read_bytes()
    (tmp_path / "tree" / "pkg").mkdir(parents=True)
    (tmp_path / "tree" / "pkg" / "lib.so").write_bytes(data)
    of_wheel = inspect(Wheel({"pkg/lib.so": data}).write(tmp_path))
    of_tree = inspect(tmp_path / "tree")
    of_file = inspect(tmp_path / "tree" / "pkg" / "lib.so")
    assert of_wheel.libraries[0].code == of_tree.libraries[0].code == of_file.libraries[0].code
    assert of_tree.libraries[0].path == "pkg/lib.so"
    assert "sm_90a" in of_wheel.architectures
    assert "sm_90" in of_wheel.architectures


def test_a_loose_fatbin_is_read() -> None:
    (library,) = inspect(PARTS / "add.fatbin").libraries
    assert library.architectures["sm_86"].entries == 1
    assert library.host == 0


def test_entries_of_kinds_that_nobody_knows_are_counted(tmp_path: Path) -> None:
    odd = make.Entry(bytes(64), sm=86, kind=0x400)
    library = tmp_path / "lib.so"
    library.write_bytes(CudaLibrary((make.container(["sm_86", odd]),)).build().data)
    shares = inspect(library).architectures
    assert shares["kind 0x400"].entries == 1
    assert shares["sm_86"].entries == 1


def test_debug_information_and_symbols_are_told_apart(tmp_path: Path) -> None:
    sections = ((".debug_info", 1, 100), (".zdebug_line", 1, 50), (".comment", 1, 7))
    path = tmp_path / "lib.so"
    path.write_bytes(elf_with(sections))
    (library,) = inspect(path).libraries
    assert (library.code.symbols, library.code.debug) == (0, 150)


def elf_with(sections: tuple[tuple[str, int, int], ...]) -> bytes:
    """An ELF file of (name, sh_type, size) sections that are not loaded, and nothing else."""
    names = b"\0.shstrtab\0"
    headers = bytes(64)
    body = b""
    for name, kind, size in sections:
        headers += struct.pack("<IIQQQQIIQQ", len(names), kind, 0, 0, 64 + len(body), size, 0, 0, 1, 0)
        names += name.encode() + b"\0"
        body += bytes(size)
    headers += struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64 + len(body), len(names), 0, 0, 1, 0)
    body += names
    count = len(sections) + 2
    ident = b"\x7fELF\2\1\1" + bytes(9)
    return (
        struct.pack(
            "<16sHHIQQQIHHHHHH", ident, 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 56, 0, 64, count, count - 1
        )
        + body
        + headers
    )


def test_a_library_that_does_not_parse_is_a_notice_and_the_rest_is_read(tmp_path: Path) -> None:
    good = BY_NAME["plain"].path.read_bytes()
    broken = make_elf.with_header(good, e_shoff=len(good) - 8)
    inspection = inspect(Wheel({"pkg/a.so": broken, "pkg/b.so": good}).write(tmp_path))
    assert [library.path for library in inspection.libraries] == ["pkg/b.so"]
    assert len(inspection.notices) == 1
    assert inspection.notices[0].startswith("pkg/a.so is not understood")


def test_a_section_that_does_not_parse_is_a_note_of_its_library(tmp_path: Path) -> None:
    built = CudaLibrary((make.container(["sm_86"]),)).build()
    at = built.data.index(struct.pack("<I", make.CONTAINER_MAGIC))
    path = tmp_path / "lib.so"
    path.write_bytes(built.data[:at] + b"\xff\xff" + built.data[at + 2 :])
    (library,) = inspect(path).libraries
    assert library.code.sections == ()
    assert ".nv_fatbin is not understood" in library.code.notes[0]


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x7fELF\1\1\1" + bytes(60)])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match="neither a wheel or conda package nor"):
        inspect(path)


def test_what_is_not_there_is_an_error_of_storage(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        inspect(tmp_path / "absent.so")


def test_a_tree_reports_its_broken_links_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(BY_NAME["plain"].path.read_bytes())
    (tmp_path / "broken.so").symlink_to("nowhere.so")
    inspection = inspect(tmp_path)
    assert len(inspection.libraries) == 1
    assert inspection.notices == ("broken.so: the link leads nowhere (to nowhere.so)",)


@pytest.mark.parametrize("name", ["many_archs", "rdc", "many_containers", "suffixes"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_90", "sm_80,sm_90"])
def test_the_estimate_counts_what_the_plan_drops(name: str, arch: str) -> None:
    request = Request(parse_targets(arch))
    guess = estimate(inspect(BY_NAME[name].path), request)
    with BY_NAME[name].path.open("rb") as file:
        account = slim_library(Source.of_file(file.fileno()), Planner(request)).account
    dropped = sum(share.size for share in account.before.values())
    dropped -= sum(share.size for share in account.after.values())
    assert guess.installed_before - guess.installed_after == dropped > 0
    assert guess.size_after == guess.installed_after


def test_the_estimate_of_the_file_leaves_host_code_its_share() -> None:
    """Entries in LZ4 shrink once more in a member: they do not weigh as much as the whole member."""
    inspection = inspect(BY_NAME["lz4"].path)
    (library,) = inspection.libraries
    packed = sum(sum(group.compressed) for group in library.code.groups)
    assert packed > 1000
    stored = round(0.25 * (library.size - packed) + 0.6 * packed)
    member = replace(inspection, size=stored, libraries=(replace(library, stored=stored),))
    nothing = Request(parse_targets("sm_75"), exact=True)
    guess = estimate(member, nothing)
    gone = guess.installed_before - guess.installed_after
    assert gone > packed / 2
    assert guess.size_before - guess.size_after < 0.7 * gone


def test_targets_are_the_devices_that_it_has_cubins_for() -> None:
    assert [target.name for target in likely_targets(inspect(BY_NAME["suffixes"].path))] == [
        "sm_90",
        "sm_100",
        "sm_103",
        "sm_120",
        "sm_121",
    ]
    assert likely_targets(inspect(BY_NAME["ptx_only"].path)) == ()


def test_an_estimate_says_where_nothing_runs() -> None:
    inspection = inspect(BY_NAME["many_containers"].path)
    guess = estimate(inspection, Request(parse_targets("sm_75")))
    assert not guess.covered
    assert "nothing in it runs there" in render_inspection_text(inspection, [guess], None)


GOLDEN = """\
many_containers.so
file, 191.2 KiB; 42 containers in 1 library

library                  size     device  unloaded  architectures
─────────────────────────────────────────────────────────────────────
many_containers.so  191.2 KiB  117.7 KiB         -  sm_80 sm_86 sm_90

content      files  installed   share
─────────────────────────────────────
device code         117.7 KiB  61.6 %
host code        1   73.5 KiB  38.4 %

pruned for  size
─────────────────────────────────
sm_80       191.2 KiB → 111.8 KiB
"""


def test_the_whole_text() -> None:
    inspection = replace(inspect(BY_NAME["many_containers"].path), artifact="many_containers.so")
    text = render_inspection_text(inspection, [estimate(inspection, Request(parse_targets("sm_80")))], 80)
    assert text == GOLDEN


@pytest.mark.parametrize("by", Grouping)
@pytest.mark.parametrize("name", ["many_archs", "rdc", "suffixes"])
def test_tables_fit_eighty_columns(by: Grouping, name: str) -> None:
    inspection = inspect(BY_NAME[name].path)
    guesses = [estimate(inspection, Request((target,))) for target in likely_targets(inspection)]
    lines = render_inspection_text(inspection, guesses, 80, by=by).splitlines()[2:]
    assert max(len(line) for line in lines) <= 80


def test_verbose_lists_every_container() -> None:
    text = render_inspection_text(
        inspect(BY_NAME["many_containers"].path), [], None, by=Grouping.CONTAINER, verbose=True
    )
    rows = [line.split() for line in text.splitlines() if "many_containers.so  .nv_fatbin" in line]
    assert [int(row[2]) for row in rows] == list(range(42))


def test_json_of_a_library() -> None:
    value = json.loads(json.dumps(inspection_json(inspect(BY_NAME["ptx_only"].path))))
    (library,) = value["libraries"]
    (section,) = library["sections"]
    assert section["sets"] == [
        {"architectures": [], "containers": 1},
        {"architectures": ["compute_75", "compute_90"], "containers": 2},
    ]
    assert set(section["compression"]) == {"zstd"}
    assert section["architectures"].keys() == {"compute_75", "compute_90"}


def test_shares_are_summed_over_libraries(tmp_path: Path) -> None:
    data = BY_NAME["plain"].path.read_bytes()
    alone = inspect(BY_NAME["plain"].path).architectures
    both = inspect(Wheel({"a.so": data, "b.so": data}).write(tmp_path)).architectures
    assert both == {label: Share(2 * share.entries, 2 * share.size) for label, share in alone.items()}


def test_device_code_among_other_data_is_found(tmp_path: Path) -> None:
    inside = Embedded(".rodata", (make.container(["sm_80"]), make.container(["sm_90", "compute_90"])))
    path = tmp_path / "lib.so"
    path.write_bytes(CudaLibrary((make.container(["sm_86"]),), embedded=(inside,)).build().data)
    (library,) = inspect(path).libraries
    assert [(s.name, s.containers, s.embedded) for s in library.code.sections] == [
        (".nv_fatbin", 1, False),
        (".rodata", 2, True),
    ]
    assert [place.number for group in library.code.groups for place in group.places] == [0, 1, 2]
    guess = estimate(inspect(path), Request(parse_targets("sm_86")))
    gone = sum(
        share.size for label, share in library.architectures.items() if label in ("sm_90", "compute_90")
    )
    assert guess.embedded == gone
    assert guess.installed_after == guess.installed_before
    assert "--embedded" in render_inspection_text(inspect(path), [guess], None)
    assert_valid(inspection_json(inspect(path), [guess]))


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    files: dict[str, bytes] = {
        "cubins/gemm_sm_90a.cubin": make_cubin.cubin(sm=90),
        "cubins/gemm_sm_100f.cubin": make_cubin.cubin(sm=100),
        "cubins/gemm_sm_86.cubin": make_cubin.cubin(sm=86),
        "cubins/odd.cubin": make_cubin.cubin(sm=86, abi=99),
        "ptx/gemm.ptx": b".version 8.0\n.target sm_80\n",
        "ptx/empty.ptx": b"",
    }
    return Wheel(files).write(tmp_path)


def test_loose_cubins_and_ptx_are_counted_by_architecture(loose: Path) -> None:
    inspection = inspect(loose)
    assert {label: share.entries for label, share in inspection.loose.items()} == {
        "sm_86": 1,
        "sm_90a": 1,
        "sm_100f": 1,
        "compute_80": 1,
        "cubin": 1,
        "compute_unknown": 1,
    }
    assert inspection.libraries == ()
    assert_valid(inspection_json(inspection))
    assert "6 loose files" in render_inspection_text(inspection, [], None)


def test_the_estimate_drops_loose_files_that_do_not_run(loose: Path) -> None:
    inspection = inspect(loose)
    guess = estimate(inspection, Request(parse_targets("sm_90")))
    gone = sum(inspection.loose[label].size for label in ("sm_86", "sm_100f"))
    assert guess.installed_before - guess.installed_after == gone
    assert guess.covered


def test_names_of_members_cannot_steer_a_terminal(tmp_path: Path) -> None:
    name = "evil\x1b]0;title\x07\u202e.so"
    (tmp_path / name).write_bytes(BY_NAME["plain"].path.read_bytes())
    (tmp_path / "gone\x1b[2J").symlink_to("nowhere")
    text = render_inspection_text(inspect(tmp_path), [], None, verbose=True)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "evil\\x1b]0;title\\x07" in text
