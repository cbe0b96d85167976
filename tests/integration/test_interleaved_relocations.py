"""Two device sections whose wrappers' relocations lie among one another, as in NVIDIA's AArch64 NCCL."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from elftools.elf.elffile import ELFFile

from builders import fatbin
from builders.library import CudaLibrary
from wheelslim.architecture import ComputeCapability
from wheelslim.pieces import stream
from wheelslim.plan import Planner, Request
from wheelslim.proof.library import verify_library
from wheelslim.slim import Method, slim_library
from wheelslim.source import Source
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

RELA = struct.Struct("<QQq")


def interleaved(library: Path) -> bytes:
    """Sort ``.rela.dyn`` so that references to the two sections alternate."""
    data = bytearray(library.read_bytes())
    with library.open("rb") as file:
        elf = ELFFile(file)
        rela = elf.get_section_by_name(".rela.dyn")
        assert rela is not None
        ranges = []
        for name in (".nv_fatbin", "__nv_relfatbin"):
            section = elf.get_section_by_name(name)
            assert section is not None
            ranges.append(range(section["sh_addr"], section["sh_addr"] + section["sh_size"]))
        offset, size = rela["sh_offset"], rela["sh_size"]
    entries = list(RELA.iter_unpack(data[offset : offset + size]))
    one, other = ([entry for entry in entries if entry[2] in where] for where in ranges)
    assert len(one) == len(other) == 6
    rest = [entry for entry in entries if entry not in one and entry not in other]
    mixed = [entry for pair in zip(one, other, strict=True) for entry in pair]
    data[offset : offset + size] = b"".join(RELA.pack(*entry) for entry in [*rest, *mixed])
    return bytes(data)


def containers(seed: str) -> tuple[bytes, ...]:
    return tuple(
        fatbin.container([fatbin.entry(word, size=5000, seed=(seed, number)) for word in ("sm_86", "sm_90")])
        for number in range(6)
    )


def test_both_sections_are_cut_and_every_wrapper_follows(tmp_path: Path) -> None:
    library = tmp_path / "interleaved.so"
    library.write_bytes(CudaLibrary(containers("a"), relocatable=containers("b")).build().data)
    library.write_bytes(interleaved(library))
    out = tmp_path / "out.so"
    fd = os.open(library, os.O_RDONLY)
    try:
        source = Source.of_file(fd)
        slimmed = slim_library(source, Planner(Request(parse_targets("sm_86"))))
        assert slimmed.account.method is Method.CUT
        assert slimmed.pieces is not None
        out.write_bytes(b"".join(stream(slimmed.pieces, source)))
        with out.open("rb") as file:
            written = Source.of_file(file.fileno())
            proof = verify_library(source, written, [ComputeCapability(8, 6)])
        assert proof.containers == slimmed.account.containers == 12
    finally:
        os.close(fd)
