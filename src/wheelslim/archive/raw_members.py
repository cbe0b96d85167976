"""Members that two wheels hold as the same compressed bytes, found without inflating any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wheelslim.archive.wheel import WheelArtifact
    from wheelslim.archive.zip_reader import ZipEntry


def same_raw_members(one: WheelArtifact, other: WheelArtifact) -> frozenset[str]:
    """Return the names whose method, sizes, CRC and compressed bytes are equal in both."""
    return frozenset(
        entry.name
        for entry in one.archive.entries
        if not entry.is_directory
        and other.has(entry.name)
        and _same(one, entry, other, other.entry(entry.name))
    )


def _same(one: WheelArtifact, left: ZipEntry, other: WheelArtifact, right: ZipEntry) -> bool:
    facts = (left.method, left.compressed_size, left.size, left.crc)
    if facts != (right.method, right.compressed_size, right.size, right.crc):
        return False
    blocks = zip(one.archive.compressed(left).blocks(), other.archive.compressed(right).blocks(), strict=True)
    return all(a == b for a, b in blocks)
