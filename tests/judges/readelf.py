"""GNU readelf: does it find fault, and what does it see?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judges.programs import program, run

if TYPE_CHECKING:
    from pathlib import Path

_HEADER = re.compile(
    r"^  (\S+)\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+) (0x\w+) ([R ][W ][E ]) (0x\w+|0)$", re.MULTILINE
)
_SECTION = re.compile(
    r"^  \[ *(\d+)\] (\S*)\s+(\S+)\s+([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+) [0-9a-f]+"
    r" +(\w*) +\d+ +\d+ +(\d+)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class ProgramHeader:
    """A row of ``readelf -lW``; ``flags`` are letters of ``RWE``."""

    type: str
    offset: int
    address: int
    file_size: int
    memory_size: int
    flags: str
    align: int


@dataclass(frozen=True)
class SectionHeader:
    """A row of ``readelf -SW``; ``flags`` are readelf's letters."""

    index: int
    name: str
    type: str
    address: int
    offset: int
    size: int
    flags: str
    align: int


@dataclass(frozen=True)
class Reading:
    """What readelf saw; ``complaints`` is everything that it wrote to standard error."""

    program_headers: tuple[ProgramHeader, ...]
    sections: tuple[SectionHeader, ...]
    complaints: str

    @property
    def loads(self) -> tuple[ProgramHeader, ...]:
        """The PT_LOAD headers."""
        return tuple(header for header in self.program_headers if header.type == "LOAD")

    def section(self, name: str) -> SectionHeader:
        """The first section of that name."""
        return next(section for section in self.sections if section.name == name)


def read(path: Path) -> Reading:
    """Run ``readelf -lSWd --dyn-syms -n -r``; skips where there is no readelf."""
    done = run([program("readelf"), "-lSWdnr", "--dyn-syms", str(path)])
    headers = tuple(
        ProgramHeader(
            kind,
            int(at, 0),
            int(address, 0),
            int(filesz, 0),
            int(memsz, 0),
            flags.replace(" ", ""),
            int(align, 0),
        )
        for kind, at, address, filesz, memsz, flags, align in _HEADER.findall(done.stdout)
    )
    sections = tuple(
        SectionHeader(int(index), name, kind, int(at, 16), int(offset, 16), int(size, 16), flags, int(align))
        for index, name, kind, at, offset, size, flags, align in _SECTION.findall(done.stdout)
    )
    complaints = done.stderr if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}"
    return Reading(headers, sections, complaints)


def sound(path: Path, original: Path | None = None) -> Reading:
    """Assert that readelf has nothing to complain of and that the PT_LOADs can be mapped.

    Nothing more, that is, than of ``original``: real libraries have gaps in their build notes.

    PT_LOADs ascend by address without overlap, p_offset ≡ p_vaddr (mod p_align), p_filesz ≤ p_memsz, and
    all lie within the file.
    """
    reading = read(path)
    assert reading.complaints == (read(original).complaints if original else "")
    assert reading.loads, "no PT_LOAD"
    size, end = path.stat().st_size, 0
    for load in reading.loads:
        assert load.address >= end, f"{load} overlaps or does not ascend"
        assert load.align & (load.align - 1) == 0
        assert (load.offset - load.address) % max(load.align, 1) == 0, f"{load} is misaligned"
        assert load.file_size <= load.memory_size
        assert load.offset + load.file_size <= size
        end = load.address + load.memory_size
    return reading
