"""Two device sections whose wrappers' relocations lie among one another, as in NVIDIA's AArch64 NCCL."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from elftools.elf.elffile import ELFFile

from wheelslim.architecture import ComputeCapability
from wheelslim.pieces import stream
from wheelslim.plan import Planner, Request
from wheelslim.slim import Method, slim_library
from wheelslim.source import Source
from wheelslim.targets import parse_targets
from wheelslim.verify import verify_library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RELA = struct.Struct("<QQq")


def interleaved(library: Path) -> bytes:
    """Sort ``.rela.dyn`` so that references to the two sections alternate."""
    data = bytearray(library.read_bytes())
    with library.open("rb") as file:
        elf = ELFFile(file)
        rela = elf.get_section_by_name(".rela.dyn")
        ranges = []
        for name in (".nv_fatbin", "__nv_relfatbin"):
            section = elf.get_section_by_name(name)
            ranges.append(range(section["sh_addr"], section["sh_addr"] + section["sh_size"]))
        offset, size = rela["sh_offset"], rela["sh_size"]
    entries = list(RELA.iter_unpack(data[offset : offset + size]))
    groups = [[entry for entry in entries if entry[2] in where] for where in ranges]
    assert all(groups)
    others = [entry for entry in entries if not any(entry in group for group in groups)]
    last = [groups[0][0], *groups[1], *groups[0][1:]]
    data[offset : offset + size] = b"".join(RELA.pack(*entry) for entry in [*others, *last])
    return bytes(data)


def test_both_sections_are_cut_and_every_wrapper_follows(
    corpus: Callable[[str], Path], tmp_path: Path
) -> None:
    library = tmp_path / "interleaved.so"
    library.write_bytes(interleaved(corpus("rdc")))
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
        assert proof.containers == slimmed.account.containers
    finally:
        os.close(fd)
