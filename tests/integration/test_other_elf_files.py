"""ELF files that are no shared libraries: executables, objects, other machines and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders import elf, fatbin
from builders.library import CudaLibrary
from integration.pruning import Pruned, prune
from judges import binutils, readelf
from judges.programs import must, program
from wheelslim.errors import ElfFormatError
from wheelslim.slim import Method

if TYPE_CHECKING:
    from pathlib import Path

    from judges.loader import Loader

MAIN = r"""
#include <stdio.h>
struct wrapper { unsigned magic, version; const unsigned char *container; void *last; };
extern struct wrapper wrappers[2];
int main(void) {
    for (int i = 0; i < 2; i++) {
        const unsigned char *p = wrappers[i].container;
        unsigned long long size = *(unsigned long long *)(p + 8), sum = 0;
        for (unsigned long long j = 0; j < size + 16; j++) sum = sum * 31 + p[j];
        printf("%llu %llu\n", size, sum);
    }
    return 0;
}
"""
ASSEMBLY = """
    .section .nv_fatbin, "a", @progbits
    .balign 8
zero: .incbin "{0}"
    .balign 8
one: .incbin "{1}"
    .section .nvFatBinSegment, "aw", @progbits
    .balign 8
    .globl wrappers
wrappers:
    .long 0x466243B1, 1
    .quad zero, 0
    .long 0x466243B1, 1
    .quad one, 0
    .section .note.GNU-stack, "", @progbits
"""
WORDS = ("sm_80", "sm_86", "sm_90", "sm_90a", "sm_100")


def contents(number: int, words: tuple[str, ...] = WORDS) -> bytes:
    return fatbin.container([fatbin.entry(word, size=12_000, seed=(number, word)) for word in words])


def checksum(data: bytes) -> int:
    total = 0
    for byte in data:
        total = (total * 31 + byte) & (2**64 - 1)
    return total


def expected(words: tuple[str, ...]) -> str:
    """What the executable prints when its containers hold these entries."""
    made = [contents(number, words) for number in range(2)]
    return "".join(f"{len(data) - 16} {checksum(data)}\n" for data in made)


def built(tmp_path: Path, *options: str, name: str = "program") -> Path:
    for number in range(2):
        (tmp_path / f"{number}.fatbin").write_bytes(contents(number))
    names = [str(tmp_path / f"{number}.fatbin") for number in range(2)]
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "fatbin.s").write_text(ASSEMBLY.format(*names))
    sources = [str(tmp_path / "fatbin.s")] + ([] if "-c" in options else [str(tmp_path / "main.c")])
    must([program("gcc"), *options, *sources, "-o", str(tmp_path / name)])
    return tmp_path / name


def check_runs(pruned: Pruned, words: tuple[str, ...]) -> None:
    readelf.sound(pruned.path)
    assert must([str(pruned.path)]) == expected(words)


PIE = [
    (),
    ("-Wl,-z,noseparate-code",),
    ("-Wl,-z,max-page-size=0x200000",),
    ("-s",),
    ("-Wl,-z,pack-relative-relocs",),
    ("-fuse-ld=lld",),
]


@pytest.mark.parametrize("options", PIE, ids=" ".join)
def test_a_position_independent_executable_is_cut(options: tuple[str, ...], tmp_path: Path) -> None:
    original = built(tmp_path, "-pie", "-fPIE", *options)
    assert must([str(original)]) == expected(WORDS)
    pruned = prune(original, tmp_path / "pruned", "sm_86")
    check_runs(pruned, ("sm_86",))
    assert pruned.account.method is Method.CUT
    assert pruned.account.notes == ()
    assert pruned.account.size_before - pruned.account.size_after > 70_000


@pytest.mark.parametrize("options", PIE, ids=" ".join)
def test_tools_on_a_cut_executable(options: tuple[str, ...], tmp_path: Path) -> None:
    pruned = prune(built(tmp_path, "-pie", "-fPIE", *options), tmp_path / "pruned", "sm_86")
    for tool in (binutils.strip, binutils.patchelf):
        assert must([str(tool(pruned.path, tmp_path / "changed"))]) == expected(("sm_86",))


def test_where_little_can_move_the_file_keeps_its_size_and_says_so(tmp_path: Path) -> None:
    """A static executable has no symbol tables for a loader, only notes, behind its program headers."""
    original = built(tmp_path, "-static-pie")
    pruned = prune(original, tmp_path / "pruned", "sm_86")
    check_runs(pruned, ("sm_86",))
    assert "no room for more program headers" in pruned.account.notes[0]


@pytest.mark.parametrize("options", [(), ("-Wl,-z,noseparate-code",), ("-static",)], ids=" ".join)
def test_an_executable_with_fixed_addresses_keeps_its_containers_in_place(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    """Its wrappers hold addresses that no relocation names, so nothing can move; tails still go."""
    original = built(tmp_path, "-no-pie", *options)
    pruned = prune(original, tmp_path / "pruned", "sm_90")
    check_runs(pruned, ("sm_90", "sm_90a"))
    stripped = binutils.strip(pruned.path, tmp_path / "stripped")
    assert must([str(stripped)]) == expected(("sm_90", "sm_90a"))


def test_an_object_file_is_compacted_in_place_and_still_links(tmp_path: Path) -> None:
    original = built(tmp_path, "-c", name="device.o")
    pruned = prune(original, tmp_path / "pruned.o", "sm_100")
    assert pruned.account.method is Method.IN_PLACE
    assert pruned.path.stat().st_size == original.stat().st_size
    assert "object file" in pruned.account.notes[0]
    (tmp_path / "main.c").write_text(MAIN)
    must([program("gcc"), str(tmp_path / "main.c"), str(pruned.path), "-o", str(tmp_path / "linked")])
    assert must([str(tmp_path / "linked")]) == expected(("sm_100",))


def test_another_machine_is_compacted_in_place(tmp_path: Path) -> None:
    riscv = 243
    data = elf.with_header(CudaLibrary((contents(0), contents(1))).build().data, e_machine=riscv)
    original = tmp_path / "original.so"
    original.write_bytes(data)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86")
    assert pruned.account.method is Method.IN_PLACE
    assert "machine 243" in pruned.account.notes[0]
    assert pruned.path.stat().st_size == len(data)


def test_what_is_no_64_bit_elf_file_is_an_error(tmp_path: Path) -> None:
    original = tmp_path / "small"
    original.write_bytes(elf.with_header(CudaLibrary((contents(0),)).build().data, ei_class=1))
    with pytest.raises(ElfFormatError, match="64-bit"):
        prune(original, tmp_path / "pruned", "sm_86")


def test_a_section_that_does_not_parse_stays_with_a_note(loader: Loader, tmp_path: Path) -> None:
    made = CudaLibrary((contents(0), contents(1))).build()
    data = bytearray(made.data)
    data[made.layout.offset[".nv_fatbin"] + 16 + 2] = 7  # the first entry's version
    original = tmp_path / "original.so"
    original.write_bytes(data)
    pruned = prune(original, tmp_path / "pruned.so", "sm_86")
    assert not pruned.changed
    assert "left as it is" in pruned.account.notes[0]
    assert "unknown entry version" in pruned.account.notes[0]
