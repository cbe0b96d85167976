"""The device code of a library, read in the tests' own words: readelf finds the sections, the rest is here.

With the containers' bounds, what cuobjdump lists of the original says what it has to list of the pruned
library: the two listings must be in step, entry by entry.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from integration.pruning import wanted
from judges import readelf
from judges.loader import Entry

if TYPE_CHECKING:
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""In the order in which cuobjdump lists them, whatever their order in the file."""

LISTED = {1: "PTX", 2: "ELF"}


def containers(library: Path) -> list[tuple[Entry, ...]]:
    """Entries of every container; digests are SHA-1 here."""
    # The first of a name: a section with a hole is described in parts, and its containers lie in the first.
    sections = {section.name: section for section in reversed(readelf.read(library).sections)}
    found: list[tuple[Entry, ...]] = []
    with library.open("rb") as file:
        for name in SECTIONS:
            if name in sections:
                file.seek(sections[name].offset)
                found += _containers(file.read(sections[name].size))
    return found


def _containers(data: bytes) -> list[tuple[Entry, ...]]:
    found, position = [], 0
    while position < len(data):
        if data[position : position + 8] == bytes(8):
            position += 8
            continue
        magic, version, header, size = struct.unpack_from("<IHHQ", data, position)
        assert (magic, version, header) == (0xBA55ED50, 1, 16), f"no container at {position:#x}"
        end, entries = position + 16 + size, []
        position += 16
        while position < end:
            kind, _, header, payload = struct.unpack_from("<HHIQ", data, position)
            sm, flags = struct.unpack_from("<I8xQ", data, position + 28)
            size = header + payload
            digest = hashlib.sha1(data[position : position + size], usedforsecurity=False).hexdigest()
            entries.append(Entry(kind, sm, flags, size, digest))
            position += size
        assert position == end, f"an entry passes the end of its container at {end:#x}"
        found.append(tuple(entries))
        position += -position % 8
    return found


def check_entries(original: Path, pruned: Path, devices: list[int]) -> None:
    """The same containers in the same order, each with exactly the wanted entries, byte for byte."""
    assert containers(pruned) == [wanted(container, devices) for container in containers(original)]


def check_listing(original: Path, pruned: Path, devices: list[int], cuobjdump: Cuobjdump) -> int:
    """Cuobjdump lists exactly the wanted entries of the original, in its order; returns their number."""
    words = iter(cuobjdump.order(original))
    expected = []
    for container in containers(original):
        kept = [id(entry) for entry in wanted(container, devices)]
        for entry in container:
            if entry.kind in LISTED:
                kind, word = next(words)
                assert (kind, int("".join(filter(str.isdigit, word)))) == (LISTED[entry.kind], entry.sm)
                if id(entry) in kept:
                    expected.append((kind, word))
    assert next(words, None) is None, "cuobjdump lists more than the sections hold"
    assert cuobjdump.order(pruned) == expected
    return len(expected)
