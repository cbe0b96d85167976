"""One archive, however it is read: from front to back, or by its central directory.

What PyPI asks of every upload (its check of zip files of 2025): local headers, central directory and end
records follow one another without gaps, tell the same names and sizes, name nothing twice, have no comments
on members, no data descriptors, and nothing follows.
"""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_WIDE = 0xFFFFFFFF


def strict_zip_faults(path: Path) -> list[str]:
    """What is wrong with a zip file; empty where both ways of reading agree in everything."""
    faults: list[str] = []
    data = memoryview(path.read_bytes())
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        return [str(error)]
    with archive:
        listed = {info.orig_filename: info for info in archive.infolist()}
        faults += ["a name is listed twice"] if len(listed) != len(archive.infolist()) else []
        faults += ["a member has a comment"] if any(info.comment for info in listed.values()) else []
        start, comment = archive.start_dir, archive.comment
    at, seen = 0, []
    while at < start:
        if bytes(data[at : at + 4]) != b"PK\x03\x04":
            return [*faults, f"no local header at {at}"]
        _, _, flags, _, _, _, _, packed, size, name_size, extra_size = _LOCAL.unpack_from(data, at)
        body = at + _LOCAL.size + name_size + extra_size
        name = bytes(data[at + _LOCAL.size : at + _LOCAL.size + name_size]).decode("utf-8", "replace")
        packed, size = _wide(bytes(data[body - extra_size : body]), packed, size)
        seen.append(name)
        if flags & 8:
            return [*faults, f"{name} has a data descriptor"]
        if name not in listed:
            faults.append(f"{name} is not listed")
        elif (listed[name].compress_size, listed[name].file_size) != (packed, size):
            faults.append(f"{name} has other sizes in the directory")
        at = body + packed
    if at != start:
        faults.append("the last member reaches into the directory")
    if len(seen) != len(set(seen)) or set(seen) != set(listed):
        faults.append("local headers and directory name different members")
    if bytes(data[len(data) - 22 - len(comment) :][:4]) != b"PK\x05\x06":
        faults.append("bytes follow the end record")
    return faults


def _wide(extra: bytes, packed: int, size: int) -> tuple[int, int]:
    """Sizes from the ZIP64 extra field, where they are at their sentinel."""
    at = 0
    while at + 4 <= len(extra):
        number, length = struct.unpack_from("<HH", extra, at)
        if number == 1:
            values = [value for (value,) in struct.iter_unpack("<Q", extra[at + 4 :][: length // 8 * 8])]
            size = values.pop(0) if size == _WIDE and values else size
            packed = values.pop(0) if packed == _WIDE and values else packed
        at += 4 + length
    return packed, size
