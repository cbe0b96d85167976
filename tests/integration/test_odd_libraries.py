"""Libraries whose headers lie: left alone or pruned in place, with a reason; one that loads still does."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from builders import elf, fatbin
from builders.elf_edit import PT_LOAD, ElfEdit
from builders.library import CudaLibrary, Embedded
from integration.pruning import prune
from judges.loader import LoadError
from wheelslim.elf.reader import read_elf
from wheelslim.library import read_library
from wheelslim.slim import LibraryOptions, Method
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.loader import Loaded, Loader

FATBIN = ".nv_fatbin"
GNU_HASH, RELA, RELASZ, RELR, RELRSZ, INIT_ARRAY = 0x6FFFFEF5, 7, 8, 36, 35, 25
RO, CODE, DATA = 0, 1, 3
"""PT_LOADs of the plain layout; the fatbins lie in the third, read-only too."""


def big(seed: int) -> bytes:
    words = ("sm_80", "sm_86", "sm_90", "compute_90")
    return fatbin.container([fatbin.entry(word, size=40_000, seed=(seed, word)) for word in words])


PLAIN = CudaLibrary(tuple(big(seed) for seed in range(4)))
SILENT = CudaLibrary(PLAIN.containers, register=False)
INNER = fatbin.container([fatbin.entry("sm_86", size=64)])
NESTED = CudaLibrary((fatbin.container([fatbin.Entry(INNER, sm=90)]), *PLAIN.containers))
RELATIVE_SLOTS = CudaLibrary(PLAIN.containers, relocations="relr")
HUGE = CudaLibrary(PLAIN.containers, one_segment=True, align=0x200000)


@dataclass(frozen=True)
class Lie:
    """What is overwritten, what becomes of the library, and the word that the report says of it."""

    name: str
    edit: Callable[[ElfEdit], None]
    method: Method
    reason: str
    library: CudaLibrary = PLAIN

    def build(self) -> bytes:
        """The library with the lie in it."""
        edit = ElfEdit(self.library.build().data)
        self.edit(edit)
        return edit.built()


def section(name: str, /, **fields: int) -> Callable[[ElfEdit], None]:
    return lambda edit: edit.section(name, **fields)


def segment(kind: int, nth: int = 0, **fields: int) -> Callable[[ElfEdit], None]:
    return lambda edit: edit.segment(kind, nth, **fields)


def into_fatbin(tag: int, size_tag: int = 0, size: int = 0) -> Callable[[ElfEdit], None]:
    def edit(file: ElfEdit) -> None:
        file.dynamic(tag, file.section_field(FATBIN, "addr") + 64)
        if size_tag:
            file.dynamic(size_tag, size)

    return edit


def table_up_to_the_fatbins(file: ElfEdit) -> None:
    """DT_RELA starts before the section and ends in it."""
    start = file.section_field(".rodata", "addr")
    file.dynamic(RELA, start)
    file.dynamic(RELASZ, (file.section_field(FATBIN, "addr") + 24 - start) // 24 * 24 + 24)


def shared_with(name: str) -> Callable[[ElfEdit], None]:
    def edit(file: ElfEdit) -> None:
        start = file.section_field(FATBIN, "offset")
        file.section(name, offset=start + 64)

    return edit


def fatbins_from(name: str) -> Callable[[ElfEdit], None]:
    """The fatbin section claims to start where another one does."""

    def edit(file: ElfEdit) -> None:
        file.section(FATBIN, offset=file.section_field(name, "offset"))

    return edit


def note_in_the_fatbins(file: ElfEdit) -> None:
    file.segment(
        elf.PT_NOTE,
        offset=file.section_field(FATBIN, "offset"),
        vaddr=file.section_field(FATBIN, "addr"),
    )


def mapped_twice(file: ElfEdit) -> None:
    """The last PT_LOAD maps the pages of the fatbins once more."""
    start = file.segment_field(PT_LOAD, "offset", 2)
    file.segment(PT_LOAD, DATA, offset=start)


def second_mapping(file: ElfEdit) -> None:
    """PT_GNU_STACK becomes a PT_LOAD of the fatbins' pages, far behind."""
    start = file.segment_field(PT_LOAD, "offset", 2)
    file.segment(
        elf.PT_GNU_STACK,
        type=PT_LOAD,
        flags=elf.PF_R,
        offset=start,
        vaddr=0x4000_0000 + start,
        filesz=0x2000,
        memsz=0x2000,
        align=0x1000,
    )


def writes_into_a_container(file: ElfEdit) -> None:
    file.relocation(0, offset=file.section_field(FATBIN, "addr") + 96)


def relr_into_a_container(file: ElfEdit) -> None:
    start = file.section_field(".relr.dyn", "offset")
    file.put(start, struct.pack("<Q", file.section_field(FATBIN, "addr") + 96))


def wrapper_of_padding(file: ElfEdit) -> None:
    """The header of the last container is overwritten, as if it were padding: its wrapper names nothing."""
    size = len(big(3))
    start = file.section_field(FATBIN, "offset") + file.section_field(FATBIN, "size") - size
    file.put(start, bytes(size))


def wrapper_of_an_inner_container(file: ElfEdit) -> None:
    """The payload of an entry is a container itself, and the first wrapper names that one."""
    outer = file.section_field(FATBIN, "addr")
    file.relocation(file.relocation_to(outer), addend=outer + 16 + 64)


def named_alike(file: ElfEdit) -> None:
    file.section(".comment", name=file.section_field(".strtab", "name"))


def hidden(name: str) -> Callable[[ElfEdit], None]:
    return section(name, type=0)


LIES = [
    # Something else uses the bytes of the section: it stays as it is.
    Lie("type", section(FATBIN, type=7), Method.NONE, "section type 0x7"),
    Lie("not loaded", section(FATBIN, flags=0), Method.NONE, "it is not loaded"),
    Lie("other address", section(FATBIN, addr=0x100000), Method.NONE, "one PT_LOAD"),
    Lie("shares with rodata", shared_with(".rodata"), Method.NONE, "shares bytes with another section"),
    Lie("shares with rela", shared_with(".rela.dyn"), Method.NONE, "shares bytes with another section"),
    Lie("over the ELF header", section(FATBIN, offset=0), Method.NONE, "shares bytes"),
    Lie("over rela", fatbins_from(".rela.dyn"), Method.NONE, "shares bytes"),
    Lie("hash inside", into_fatbin(GNU_HASH), Method.NONE, "the dynamic table names bytes of it"),
    Lie("rela inside", into_fatbin(RELA, RELASZ, 240), Method.NONE, "the dynamic table names bytes of it"),
    Lie("rela reaches in", table_up_to_the_fatbins, Method.NONE, "the dynamic table names bytes of it"),
    Lie("constructors inside", into_fatbin(INIT_ARRAY), Method.NONE, "the dynamic table names bytes of it"),
    Lie("note inside", note_in_the_fatbins, Method.NONE, "program header of type 0x4"),
    Lie("mapped by another", second_mapping, Method.NONE, "one PT_LOAD"),
    Lie("half mapped", segment(PT_LOAD, 2, filesz=0x1000, memsz=0x1000), Method.NONE, "one PT_LOAD"),
    Lie("relocated", writes_into_a_container, Method.NONE, "relocations write into it"),
    Lie("relocated by RELR", relr_into_a_container, Method.NONE, "relocations write into it", RELATIVE_SLOTS),
    Lie("wrapper of padding", wrapper_of_padding, Method.NONE, "names a container at", SILENT),
    Lie("nested", wrapper_of_an_inner_container, Method.NONE, "names a container at", NESTED),
    Lie("loads out of order", lambda file: file.swap_loads(0, 3), Method.NONE, "out of order"),
    Lie("loads overlap", segment(PT_LOAD, CODE, memsz=0x200000), Method.NONE, "overlap"),
    Lie("two loads of the same bytes", mapped_twice, Method.NONE, "one PT_LOAD"),
    # The headers contradict one another elsewhere: nothing moves.
    Lie("wrong offset of PT_NOTE", segment(elf.PT_NOTE, offset=0x300), Method.IN_PLACE, "names an offset"),
    Lie(
        "wrong offset of PT_DYNAMIC", segment(elf.PT_DYNAMIC, vaddr=0x60), Method.IN_PLACE, "names an offset"
    ),
    Lie("odd alignment", segment(PT_LOAD, DATA, align=0x300), Method.IN_PLACE, "odd alignment 0x300"),
    Lie("small alignment", segment(PT_LOAD, DATA, align=0x10), Method.IN_PLACE, "odd alignment 0x10"),
    Lie("alignment it lacks", segment(PT_LOAD, 1, align=1 << 30), Method.IN_PLACE, "not congruent", HUGE),
    Lie("sections share bytes", section(".text", size=0x1010), Method.IN_PLACE, "share bytes of the file"),
    Lie(
        "data elsewhere", section(".data", addr=0x10), Method.IN_PLACE, "does not lie where its address says"
    ),
    Lie("loaded, against its flags", section(".data", flags=0), Method.IN_PLACE, "against its flags"),
]


def write(lie: Lie, tmp_path: Path) -> Path:
    path = tmp_path / "odd.so"
    path.write_bytes(lie.build())
    return path


def notes(path: Path) -> tuple[str, ...]:
    with path.open("rb") as file:
        return read_library(Source.of_file(file.fileno())).notes


def loaded(loader: Loader, path: Path) -> Loaded | None:
    try:
        return loader.load(path, "answer")
    except LoadError:
        return None


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_what_is_odd_stays_or_keeps_its_place(lie: Lie, loader: Loader, tmp_path: Path) -> None:
    odd = write(lie, tmp_path)
    before = loaded(loader, odd)
    pruned = prune(odd, tmp_path / "pruned.so", "sm_86")  # Its proof holds, too.
    assert pruned.account.method is lie.method
    assert any(lie.reason in note for note in (*pruned.account.notes, *notes(odd)))
    assert pruned.account.size_after == odd.stat().st_size
    if before is not None:
        after = loaded(loader, pruned.path)
        assert after is not None
        assert after.values == before.values
        assert [one.version for one in after.registered] == [one.version for one in before.registered]


@pytest.mark.parametrize("name", [".gnu.hash", ".note.gnu.build-id", ".dynstr", ".dynsym"])
def test_bytes_that_no_section_describes_are_not_free(name: str, loader: Loader, tmp_path: Path) -> None:
    """The program header table grows only over what moves: a table without a section header does not."""
    lie = Lie(name, hidden(name), Method.CUT, "")
    odd = write(lie, tmp_path)
    assert loaded(loader, odd) is not None
    pruned = prune(odd, tmp_path / "pruned.so", "sm_86")
    assert pruned.changed
    after = loaded(loader, pruned.path)
    assert after is not None
    assert after.values == {"answer": "42"}


def embedded_library() -> CudaLibrary:
    inside = Embedded(".ldata", tuple(big(seed) for seed in range(3)), pointers=True)
    return CudaLibrary(PLAIN.containers[:1], embedded=(inside,), exports=40)


def in_ldata(tag: int) -> Callable[[ElfEdit], None]:
    """A dynamic tag leads into the first embedded container."""
    return lambda edit: edit.dynamic(tag, edit.section_field(".ldata", "addr") + 128)


def relocation_in_ldata(edit: ElfEdit) -> None:
    edit.relocation(0, offset=edit.section_field(".ldata", "addr") + 128)


def unreadable_ldata(edit: ElfEdit) -> None:
    """Nobody can hand over to the driver what nobody can read (a finding of the fuzzer)."""
    address = edit.section_field(".ldata", "addr")
    for nth in range(9):
        start = edit.segment_field(PT_LOAD, "vaddr", nth)
        if start <= address < start + edit.segment_field(PT_LOAD, "memsz", nth):
            edit.segment(PT_LOAD, nth, flags=0)
            return


@pytest.mark.parametrize(
    ("edit", "searched"),
    [
        (unreadable_ldata, 0),
        (in_ldata(GNU_HASH), 2),
        (relocation_in_ldata, 2),
        (section(".ldata", addr=0x9000_0000), 0),
        (section(".ldata", offset=0x1000), 0),
        (segment(elf.PT_NOTE, offset=0x2100, vaddr=0x2100), 3),
    ],
    ids=[
        "unreadable",
        "a table in one",
        "a relocated word in one",
        "another address",
        "over others",
        "elsewhere",
    ],
)
def test_embedded_containers_that_something_else_uses_stay(
    edit: Callable[[ElfEdit], None], searched: int, tmp_path: Path
) -> None:
    odd = ElfEdit(embedded_library().build().data)
    edit(odd)
    path = tmp_path / "odd.so"
    path.write_bytes(odd.built())
    pruned = prune(path, tmp_path / "pruned.so", "sm_86", LibraryOptions(embedded=True))
    assert pruned.account.embedded is not None
    assert pruned.account.embedded.containers == searched


def test_flags_of_the_system_survive_on_a_hole(tmp_path: Path) -> None:
    """A readable hole is not executable; the other flags of its segment stay, PF_MASKOS, too."""
    inside = Embedded(".rodata", tuple(big(seed) for seed in range(3)), pointers=True)
    edit = ElfEdit(CudaLibrary((), embedded=(inside,), one_segment=True, exports=40).build().data)
    edit.segment(PT_LOAD, 0, flags=elf.PF_R | elf.PF_X | 0x0010_0000)
    path = tmp_path / "flags.so"
    path.write_bytes(edit.built())
    pruned = prune(path, tmp_path / "pruned.so", "sm_86", LibraryOptions(embedded=True))
    with pruned.path.open("rb") as file:
        loads = read_elf(Source.of_file(file.fileno())).loads
    holes = [load for load in loads if not load.p_filesz]
    assert holes
    assert {load.p_flags for load in holes} == {elf.PF_R | 0x0010_0000}
