"""What a slimmed wheel would measure if zlib had deflated its changed members at level 6."""

from __future__ import annotations

import zipfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def size_at_level_6(original: Path, slimmed: Path) -> int:
    """Return the size of ``slimmed``, had zlib deflated the members that differ from the original."""
    size = slimmed.stat().st_size
    with zipfile.ZipFile(original) as before, zipfile.ZipFile(slimmed) as after:
        crcs = {info.filename: info.CRC for info in before.infolist()}
        for info in after.infolist():
            if crcs.get(info.filename) not in (None, info.CRC) and info.compress_type == zipfile.ZIP_DEFLATED:
                size += _deflated(after, info) - info.compress_size
    return size


def _deflated(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    size = 0
    with archive.open(info) as content:
        while block := content.read(1 << 20):
            size += len(packer.compress(block))
    return size + len(packer.flush())
