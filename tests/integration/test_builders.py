"""What tests/builders makes passes for real: readelf, cuobjdump, the loader, pip and uv take it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from builders import fatbin
from builders.library import CudaLibrary, Embedded
from builders.linked import ONE_SEGMENT, LinkedLibrary
from builders.machine import AARCH64, X86_64, Machine
from builders.wheel import Member, Wheel
from corpus.recipes import PARTS
from judges import binutils, installers, readelf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump
    from judges.loader import Loader

WORDS = ("sm_80", "sm_86", "sm_90a", "sm_120", "compute_120")
CONTAINERS = tuple(
    fatbin.container([fatbin.entry(word, size=700, seed=seed, codec=codec) for word in WORDS])
    for seed, codec in enumerate((None, "zstd", "lz4", None, None, "zstd"))
)
LAYOUTS: dict[str, dict[str, Any]] = {
    "usual": {},
    "relr": {"relocations": "relr"},
    "one_segment": {"one_segment": True, "align": 0x200000},
    "lld": {"packed": True, "in_place": False, "phdr": True},
    "sysv": {"hash_style": "sysv", "note": False},
    "both_hashes": {"hash_style": "both", "headroom": 56},
    "moved_tables": {"moved_tables": True, "headroom": 2688},
    "rdc": {"relocatable": CONTAINERS[3:]},
    "odd": {
        "container_align": 256,
        "unreferenced": frozenset({1}),
        "pointed": frozenset({2}),
        "inside": frozenset({3}),
        "in_code": (1, 4),
        "tail": 0,
    },
    "embedded": {
        "embedded": (
            Embedded(".rodata", CONTAINERS[:2]),
            Embedded(".cask_resource", CONTAINERS[2:4], pointers=True),
            Embedded(".lrodata", CONTAINERS[:1]),
            Embedded(".ldata", CONTAINERS[:3]),
            Embedded(".data", CONTAINERS[:1]),
        )
    },
}

every_layout = pytest.mark.parametrize("name", LAYOUTS)
every_machine = pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=["x86_64", "aarch64"])


def test_cuobjdump_reads_built_containers(cuobjdump: Cuobjdump, tmp_path: Path) -> None:
    built = tmp_path / "built.fatbin"
    built.write_bytes(fatbin.container([*WORDS, fatbin.concatenated(["sm_70", "sm_75"]), "lto_86"]))
    expected = ["sm_80", "sm_86", "sm_90", "sm_120", "compute_120", "sm_70", "sm_75"]
    assert cuobjdump.listing(built) == Counter(expected)


@every_layout
@every_machine
def test_built_libraries_load_and_register(
    name: str, machine: Machine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: Loader = request.getfixturevalue("loader" if machine is X86_64 else "loader_aarch64")
    spec = CudaLibrary(CONTAINERS, machine=machine, **LAYOUTS[name])
    built = spec.build()
    path = tmp_path / "built.so"
    path.write_bytes(built.data)
    readelf.sound(path)
    functions = [f"container_{number}:{len(CONTAINERS[number])}" for number in spec.in_code]
    loaded = judge.load(path, "answer", *functions)
    assert loaded.values == {
        "answer": "42",
        **{f"container_{number}": CONTAINERS[number].hex() for number in spec.in_code},
    }
    assert [len(call.entries) for call in loaded.registered] == [len(WORDS)] * (6 - len(spec.unreferenced))
    assert len(loaded.registered[0].prelinked) == len(spec.relocatable)


@every_layout
def test_built_libraries_survive_strip_and_patchelf(name: str, loader: Loader, tmp_path: Path) -> None:
    path = tmp_path / "built.so"
    path.write_bytes(CudaLibrary(CONTAINERS, **LAYOUTS[name]).build().data)
    for changed in (
        binutils.strip(path, tmp_path / "stripped.so"),
        binutils.patchelf(path, tmp_path / "patched.so"),
    ):
        readelf.sound(changed)
        assert loader.load(changed, "answer").values == {"answer": "42"}


LINKED: dict[str, dict[str, Any]] = {
    "usual": {"linker": ("-z", "separate-code")},
    "one_segment": {"linker": ONE_SEGMENT},
    "executable": {"executable": True},
    "odd": {"align": 256, "unreferenced": frozenset({0, 3}), "in_code": (0, 2), "linker": ONE_SEGMENT},
}


@pytest.mark.parametrize("name", LINKED)
@every_machine
def test_linked_libraries_load_and_register(
    name: str, machine: Machine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: Loader = request.getfixturevalue("loader" if machine is X86_64 else "loader_aarch64")
    containers = ((PARTS / "add.fatbin").read_bytes(), (PARTS / "scale.fatbin").read_bytes()) * 3
    spec = LinkedLibrary(containers, **LINKED[name])
    path = spec.build(tmp_path / "linked", judge.compiler, judge.runtime)
    assert readelf.sound(path).loads[0].align == machine.page
    functions = [f"container_{number}:{len(containers[number])}" for number in spec.in_code]
    loaded = judge.load(path, "answer", *functions)
    assert loaded.values["answer"] == "42"
    assert [loaded.values[f"container_{number}"] for number in spec.in_code] == [
        containers[number].hex() for number in spec.in_code
    ]
    assert len(loaded.registered) == len(spec.wrapped())


def test_cuobjdump_finds_the_containers_of_a_built_library(cuobjdump: Cuobjdump, tmp_path: Path) -> None:
    path = tmp_path / "built.so"
    path.write_bytes(CudaLibrary(CONTAINERS, relocatable=CONTAINERS[:1]).build().data)
    assert cuobjdump.listing(path) == Counter([word.rstrip("a") for word in WORDS] * 7)


@pytest.mark.parametrize("install", [installers.pip_install, installers.uv_install])
def test_installers_take_a_built_wheel(install: Callable[[Path, Path], Path], tmp_path: Path) -> None:
    wheel = Wheel(
        {"cuda_demo/__init__.py": b"ANSWER = 42\n", "cuda_demo/run.sh": Member(b"#!/bin/sh\n", 0o755)}
    )
    path = Wheel(wheel.files, tag="py3-none-any").write(tmp_path)
    target = install(path, tmp_path / "installed")
    assert (target / "cuda_demo" / "__init__.py").read_bytes() == b"ANSWER = 42\n"


def test_wheel_unpack_notices_an_untrue_record(tmp_path: Path) -> None:
    row = f"cuda_demo/__init__.py,{wrong_hash()},3"
    path = Wheel({"cuda_demo/__init__.py": b"abc"}, in_record={"cuda_demo/__init__.py": row}).write(tmp_path)
    with pytest.raises(AssertionError, match="Hash mismatch"):
        installers.wheel_unpack(path, tmp_path / "unpacked")


def wrong_hash() -> str:
    return "sha256=" + "A" * 43
