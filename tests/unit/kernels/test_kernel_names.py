"""Names of kernels in cubins and PTX: built, made by nvcc, and broken."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import fatbin as make
from builders.cubin import cubin
from builders.sources import source_of
from corpus.recipes import LIBRARIES, PARTS
from wheelslim.errors import ElfFormatError, FatbinFormatError
from wheelslim.fatbin.reader import read_container
from wheelslim.kernels.names import cubin_kernels, entry_kernels, ptx_kernels
from wheelslim.library import read_library
from wheelslim.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump

ADD = "_Z10add_kernelPKfS0_Pfi"


@pytest.mark.parametrize("abi", [7, 8])
def test_kernels_are_listed_and_device_functions_are_not(abi: int) -> None:
    image = cubin(["_Z3addPf", "scale"], functions=["_Z6helperf", "__cuda_sm20_div_u64"], abi=abi)
    assert cubin_kernels(image) == ("_Z3addPf", "scale")


def test_a_cubin_without_kernels_has_none() -> None:
    assert cubin_kernels(cubin(functions=["_Z6helperf"])) == ()
    assert cubin_kernels(cubin()) == ()


def test_a_kernel_that_only_its_parameters_tell_of_is_listed() -> None:
    """Overlooking it could empty a container that is needed."""
    assert cubin_kernels(cubin(["seen"], parameters=["seen", "hidden"])) == ("seen", "hidden")


def test_code_without_symbols_is_an_error_and_not_a_cubin_without_kernels() -> None:
    with pytest.raises(ElfFormatError, match="without a symbol table"):
        cubin_kernels(cubin(["lost"], symbols=False, parameters=()))


@pytest.mark.parametrize("image", [b"", b"\x7fELF", cubin(["k"], machine=62), cubin(["k"])[:200]])
def test_what_is_no_cubin_is_an_error(image: bytes) -> None:
    with pytest.raises(ElfFormatError):
        cubin_kernels(image)


@given(st.data())
def test_a_damaged_cubin_gives_names_or_an_error_of_ours(data: st.DataObject) -> None:
    image = bytearray(cubin(["_Z3addPf", "scale"], functions=["f"]))
    for at in data.draw(st.lists(st.integers(0, len(image) - 1), min_size=1, max_size=8)):
        image[at] = data.draw(st.integers(0, 255))
    image = image[: data.draw(st.integers(0, len(image)))] if data.draw(st.booleans()) else image
    with suppress(ElfFormatError):
        assert all(isinstance(name, str) for name in cubin_kernels(bytes(image)))


def test_names_that_overlap_cannot_eat_the_memory() -> None:
    """A table of many symbols may point into one long string again and again."""
    long = "k" * 60_000
    image = cubin([long], repeat=3000, parameters=())
    with pytest.raises(ElfFormatError, match="too much room"):
        cubin_kernels(image)


def test_ptx_names_its_kernels() -> None:
    text = (
        b".visible .entry _Z3addPf(\n.param .u64 p)\n{ ret; }\n.func helper()\n.weak .entry\tscale$1 ()\n{}\n"
    )
    assert ptx_kernels(text) == ("_Z3addPf", "scale$1")


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_names_come_out_of_compressed_entries(codec: str | None) -> None:
    plain = make.Entry(cubin(["kernel"]), sm=86)
    with source_of(make.container([make.compressed(plain, codec) if codec else plain])) as source:
        assert entry_kernels(source, read_container(source, 0).entries[0], 86) == ("kernel",)


def test_of_a_concatenated_entry_only_the_chosen_number_counts() -> None:
    with (PARTS / "concatenated_suffixes.fatbin").open("rb") as file:
        source = Source.of_file(file.fileno())
        first, second = read_container(source, 0).entries
        assert entry_kernels(source, first, 90) == (ADD,)
        assert entry_kernels(source, second, 103) == (ADD,)
        assert entry_kernels(source, second, 90) == ()


@pytest.mark.parametrize("kind", [make.LTO, make.TILE, 0x400])
def test_other_kinds_have_no_names(kind: int) -> None:
    with source_of(make.container([make.Entry(b"x" * 64, kind=kind)])) as source:
        (entry,) = read_container(source, 0).entries
        with pytest.raises(FatbinFormatError, match="without names"):
            entry_kernels(source, entry, 86)


@pytest.mark.parametrize(
    "name", ["many_archs", "zstd", "lz4", "rdc", "suffixes", "many_containers", "ptx_only"]
)
def test_cuobjdump_lists_the_same_kernels(name: str, cuobjdump: Cuobjdump) -> None:
    path = LIBRARIES / f"{name}.so"
    found: list[str] = []
    with path.open("rb") as file:
        source = Source.of_file(file.fileno())
        for part in read_library(source).device:
            section = source.part(part.section.sh_offset, part.section.sh_size)
            for container in part.tiling.containers:
                for entry in container.entries:
                    if not entry.is_ptx:
                        found += entry_kernels(section, entry, entry.sm)
    assert sorted(found) == sorted(listed_by_cuobjdump(cuobjdump.program, path))


def listed_by_cuobjdump(program: Path, path: Path) -> list[str]:
    said = subprocess.run([program, "-symbols", "-all", path], capture_output=True, text=True, check=False)
    return re.findall(r"^FUNC +\w+ +\w+ +ENTRY +(\S+)$", said.stdout, re.MULTILINE)
