"""Attacks on ELF files and containers, one row each: what wheelslim makes of the library.

``tests/integration/test_elf_attacks.py`` runs every row; more lies of headers, each with the reason that the
report gives, are in ``tests/integration/test_odd_libraries.py``. ``python -m reliability.attack_page`` writes
both into docs/reliability.md.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from builders import elf, fatbin
from builders.elf import PHDR, PT_LOAD, SHDR
from builders.elf_edit import ElfEdit
from builders.library import CudaLibrary

if TYPE_CHECKING:
    from collections.abc import Callable

FATBIN = ".nv_fatbin"
REFUSED, LEFT, IN_PLACE, CUT = "refused", "left alone", "in place", "cut"
RELA, RELASZ, RELAENT, RELR, RELRSZ, SYMTAB = 7, 8, 9, 36, 35, 6
NEAR = {"2^31": 1 << 31, "2^32 - 8": (1 << 32) - 8, "2^63": 1 << 63, "2^64 - 16": (1 << 64) - 16}
PHENTSIZE, PHNUM, SHENTSIZE, SHNUM = 54, 56, 58, 60


def big(seed: int) -> bytes:
    """A container of four entries."""
    words = ("sm_80", "sm_86", "sm_90", "compute_90")
    return fatbin.container([fatbin.entry(word, size=20_000, seed=(seed, word)) for word in words])


PLAIN = CudaLibrary(tuple(big(seed) for seed in range(3)))
PACKED = CudaLibrary(PLAIN.containers, relocations="relr")
SILENT = CudaLibrary(PLAIN.containers, register=False)
SIZE = len(big(0))


@dataclass(frozen=True)
class ElfAttack:
    """What is overwritten, what becomes of the library, and a word of the reason that is given."""

    group: str
    name: str
    edit: Callable[[ElfEdit], None]
    becomes: str
    reason: str = ""
    library: CudaLibrary = PLAIN

    def build(self) -> bytes:
        """The library with the lie in it."""
        edit = ElfEdit(self.library.build().data)
        self.edit(edit)
        return edit.built()


def header(at: int, word: str, value: int) -> Callable[[ElfEdit], None]:
    """Overwrite a field of the ELF header."""
    return lambda edit: edit.put(at, struct.pack(word, value))


def section(name: str, /, **fields: int) -> Callable[[ElfEdit], None]:
    """Overwrite fields of a section header."""
    return lambda edit: edit.section(name, **fields)


def segment(kind: int, nth: int = 0, **fields: int) -> Callable[[ElfEdit], None]:
    """Overwrite fields of a program header."""
    return lambda edit: edit.segment(kind, nth, **fields)


def tags(**values: int) -> Callable[[ElfEdit], None]:
    """Overwrite values of the dynamic table, by the names above."""

    def edit(file: ElfEdit) -> None:
        for name, value in values.items():
            file.dynamic(globals()[name], value)

    return edit


def container(nth: int, at: int, word: str, value: int) -> Callable[[ElfEdit], None]:
    """Overwrite a field of a container, ``at`` bytes after its start."""

    def edit(file: ElfEdit) -> None:
        file.put(file.section_field(FATBIN, "offset") + nth * SIZE + at, struct.pack(word, value))

    return edit


def many_segments(count: int, kind: int) -> Callable[[ElfEdit], None]:
    """A longer program header table behind the file: the old headers, and ``count`` of a kind."""

    def edit(file: ElfEdit) -> None:
        data = file.built()
        phoff, phnum = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, PHNUM)[0]
        table = data[phoff : phoff + phnum * PHDR.size] + PHDR.pack(kind, elf.PF_R, 0, 0, 0, 0, 0, 8) * count
        where = file.append(table)
        file.put(32, struct.pack("<Q", where))
        file.put(PHNUM, struct.pack("<H", phnum + count))

    return edit


def many_loads(file: ElfEdit) -> None:
    """A thousand PT_LOADs of one page each, far behind the others."""
    data = file.built()
    phoff, phnum = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, PHNUM)[0]
    page = file.append(bytes(4096))
    start = 0x4000_0000
    loads = b"".join(
        PHDR.pack(PT_LOAD, elf.PF_R, page, start + n * 0x2000, start + n * 0x2000, 4096, 4096, 4096)
        for n in range(1000)
    )
    where = file.append(data[phoff : phoff + phnum * PHDR.size] + loads)
    file.put(32, struct.pack("<Q", where))
    file.put(PHNUM, struct.pack("<H", phnum + 1000))


def many_sections(file: ElfEdit) -> None:
    """60,000 more section headers, all empty."""
    data = file.built()
    shoff, shnum = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, SHNUM)[0]
    where = file.append(data[shoff : shoff + shnum * SHDR.size] + bytes(SHDR.size * 60_000))
    file.put(40, struct.pack("<Q", where))
    file.put(SHNUM, struct.pack("<H", shnum + 60_000))


def wild_relocations(*, into: bool) -> Callable[[ElfEdit], None]:
    """Addends (and, unless ``into``, places too) of the first relocations become any addresses."""

    def edit(file: ElfEdit) -> None:
        dice = random.Random(1)
        start = file.section_field(FATBIN, "addr")
        for nth in range(2):
            if into:
                file.relocation(nth, addend=start + dice.randrange(SIZE))
            else:
                file.relocation(nth, offset=dice.getrandbits(64), addend=dice.getrandbits(64))

    return edit


def bitmaps_everywhere(file: ElfEdit) -> None:
    """Every RELR word is a bitmap of all ones."""
    start, size = (file.section_field(".relr.dyn", field) for field in ("offset", "size"))
    file.put(start + 8, b"\xff" * (size - 8) if size > 8 else b"")
    file.put(start, struct.pack("<Q", file.section_field(FATBIN, "addr") & ~7))


def nested(file: ElfEdit) -> None:
    """The payload of the first entry is a container header that claims the rest of the section."""
    start, size = (file.section_field(FATBIN, field) for field in ("offset", "size"))
    file.put(start + 16 + 64, fatbin.CONTAINER_HEADER.pack(fatbin.CONTAINER_MAGIC, 1, 16, size - 200))


def two_wrappers_of_one(file: ElfEdit) -> None:
    """Two wrappers name the same container."""
    start = file.section_field(FATBIN, "addr")
    file.relocation(file.relocation_to(start), addend=start + SIZE)


def overlapping_loads(file: ElfEdit) -> None:
    """The segment of the containers reaches over the next one's addresses."""
    file.segment(PT_LOAD, 2, memsz=file.segment_field(PT_LOAD, "memsz", 2) + 0x100_0000)


FIELDS: tuple[tuple[str, Callable[[int], Callable[[ElfEdit], None]], str], ...] = (
    ("e_phoff", lambda v: header(32, "<Q", v), "program header table passes the end"),
    ("e_shoff", lambda v: header(40, "<Q", v), "section header table passes the end"),
    ("p_offset", lambda v: segment(PT_LOAD, 2, offset=v), "segment passes the end"),
    ("p_filesz", lambda v: segment(PT_LOAD, 2, filesz=v, memsz=(1 << 64) - 1), "segment passes the end"),
    ("sh_offset", lambda v: section(FATBIN, offset=v), "passes the end"),
    ("sh_size", lambda v: section(FATBIN, size=v), "passes the end"),
)


def _header_rows() -> list[ElfAttack]:
    rows = [
        ElfAttack("offsets", f"{name} of {size}", edit(value), REFUSED, reason)
        for size, value in NEAR.items()
        for name, edit, reason in FIELDS
    ]
    for size, value in NEAR.items():
        rows += [
            ElfAttack(
                "offsets", f"p_vaddr of {size}", segment(PT_LOAD, 2, vaddr=value), LEFT, "out of order"
            ),
            ElfAttack("offsets", f"sh_addr of {size}", section(FATBIN, addr=value), LEFT, "one PT_LOAD"),
            ElfAttack("offsets", f"DT_RELA of {size}", tags(RELA=value), CUT, "stay where they are"),
            ElfAttack("offsets", f"DT_RELASZ of {size}", tags(RELASZ=value), LEFT, "dynamic table"),
            ElfAttack("offsets", f"DT_RELRSZ of {size}", tags(RELRSZ=value), LEFT, "dynamic table", PACKED),
        ]
    return rows


def _rows() -> list[ElfAttack]:
    zero = [
        ElfAttack("entry sizes", "e_phentsize of 0", header(PHENTSIZE, "<H", 0), REFUSED, "program header"),
        ElfAttack("entry sizes", "e_shentsize of 0", header(SHENTSIZE, "<H", 0), REFUSED, "section header"),
        ElfAttack("entry sizes", "e_phnum of 0", header(PHNUM, "<H", 0), LEFT, "PT_LOAD"),
        ElfAttack("entry sizes", "e_shnum of 0", header(SHNUM, "<H", 0), LEFT),
        ElfAttack(
            "entry sizes",
            "sh_entsize of .dynsym of 0",
            section(".dynsym", entsize=0),
            CUT,
            "stay where they are",
        ),
        ElfAttack("sections", ".dynsym is hidden", section(".dynsym", type=0), CUT, "stay where they are"),
        ElfAttack("entry sizes", "DT_RELAENT of 0", tags(RELAENT=0), CUT),
        ElfAttack(
            "entry sizes", "entry header of 0 bytes", container(0, 16 + 4, "<I", 0), LEFT, "header size"
        ),
        ElfAttack("entry sizes", "payload of 0 bytes", container(0, 16 + 8, "<Q", 0), LEFT, "left as it is"),
        ElfAttack(
            "entry sizes", "container header of 0 bytes", container(0, 6, "<H", 0), LEFT, "left as it is"
        ),
        ElfAttack("entry sizes", "container of 0 bytes", container(0, 8, "<Q", 0), LEFT, "left as it is"),
    ]
    sizes = [
        ElfAttack(
            "containers", f"{what} of {name}", container(0, at, word, value & mask), LEFT, "left as it is"
        )
        for what, at, word, mask in (
            ("container", 8, "<Q", (1 << 64) - 1),
            ("payload", 16 + 8, "<Q", (1 << 64) - 1),
            ("compressed size", 16 + 16, "<I", (1 << 32) - 1),
            ("entry header", 16 + 4, "<I", (1 << 32) - 1),
        )
        for name, value in NEAR.items()
        if value & mask
    ]
    return [
        *zero,
        *sizes,
        ElfAttack(
            "containers",
            "container that reaches into the next",
            container(0, 8, "<Q", SIZE + 8),
            LEFT,
            "left as it is",
        ),
        ElfAttack(
            "containers",
            "container that ends in its last entry",
            container(0, 8, "<Q", SIZE - 24),
            LEFT,
            "left as it is",
        ),
        ElfAttack(
            "containers",
            "container that swallows the next",
            container(0, 8, "<Q", 2 * SIZE - 16),
            LEFT,
            "left as it is",
            SILENT,
        ),
        ElfAttack("containers", "container inside a payload", nested, CUT),
        ElfAttack("containers", "two wrappers of one container", two_wrappers_of_one, CUT),
        ElfAttack("containers", "unknown magic", container(0, 0, "<I", 0x1234), LEFT, "left as it is"),
        ElfAttack("containers", "unknown version", container(0, 4, "<H", 9), LEFT, "left as it is"),
        ElfAttack("segments", "PT_LOADs that overlap", overlapping_loads, LEFT, "one PT_LOAD|overlap"),
        ElfAttack("segments", "4,000 program headers of no type", many_segments(4000, 0), IN_PLACE),
        ElfAttack("segments", "4,000 empty PT_NOTEs", many_segments(4000, elf.PT_NOTE), IN_PLACE),
        ElfAttack(
            "segments", "5,000 program headers", many_segments(5000, 0), REFUSED, "program header table"
        ),
        ElfAttack("segments", "60,000 empty PT_LOADs", many_segments(60_000, PT_LOAD), REFUSED, "header"),
        ElfAttack(
            "segments",
            "1,000 PT_LOADs of one page of the file",
            many_loads,
            IN_PLACE,
            "behind its last section",
        ),
        ElfAttack("sections", "60,000 empty section headers", many_sections, CUT),
        ElfAttack("relocations", "any addends", wild_relocations(into=True), LEFT, "names a container at"),
        ElfAttack("relocations", "any places and addends", wild_relocations(into=False), CUT),
        ElfAttack("relocations", "RELR bitmaps of all ones", bitmaps_everywhere, LEFT, "relocations", PACKED),
        ElfAttack("relocations", "the table is the whole file", whole_file, LEFT),
        ElfAttack(
            "relocations", "symbol that is not there", lambda f: f.relocation(0, info=(1 << 63) | 1), CUT
        ),
    ]


def whole_file(file: ElfEdit) -> None:
    """DT_RELA names the first segment from its start to its end."""
    file.dynamic(RELA, 0)
    file.dynamic(RELASZ, file.segment_field(PT_LOAD, "filesz", 0) // 24 * 24)


ELF_ATTACKS = (*_header_rows(), *_rows())
