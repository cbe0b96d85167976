"""Zip files byte by byte, sound ones and those that no sane tool writes.

Format: PKWARE APPNOTE.TXT 6.3.10. Every field of a local header, a central record and the end records can be
given a value of its own; what is not given is true.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDE = 0xFFFFFFFF


@dataclass(frozen=True)
class RawMember:
    """One member; ``local`` and ``central`` override fields by name.

    Fields: needed, flags, method, time, date, crc, compressed, size, name, extra; the central record has
    made_by, comment, disk, internal, external and offset as well. ``wide`` puts sizes (and, in the central
    record, the offset) into ZIP64 extra fields; ``descriptor`` is None, or the width of its sizes (4 or 8
    bytes), negative for one without a signature.
    """

    name: bytes
    data: bytes = b""
    method: int = 8
    flags: int = 0
    wide: bool = False
    descriptor: int | None = None
    extra: bytes = b""
    comment: bytes = b""
    gap: bytes = b""
    compressed: bytes | None = None
    local: Mapping[str, int | bytes] = field(default_factory=dict)
    central: Mapping[str, int | bytes] = field(default_factory=dict)

    @property
    def payload(self) -> bytes:
        """The data as they lie in the file."""
        if self.compressed is not None:
            return self.compressed
        if self.method != 8:
            return self.data
        squeezer = zlib.compressobj(6, zlib.DEFLATED, -15)
        return squeezer.compress(self.data) + squeezer.flush()


def zip_bytes(
    members: Sequence[RawMember],
    *,
    prefix: bytes = b"",
    adjusted: bool = True,
    comment: bytes = b"",
    end: Mapping[str, int] | None = None,
    end64: Mapping[str, int] | None = None,
    before_end: bytes = b"",
) -> bytes:
    """Return a whole zip file.

    ``prefix`` stands before it; ``adjusted`` says whether offsets count from the start of the prefix.
    ``end`` and ``end64`` override fields of the end records; ``end64`` (even empty) adds the ZIP64 ones.
    """
    out = bytearray(prefix)
    base = 0 if adjusted else len(prefix)
    directory = bytearray()
    for member in members:
        out += member.gap
        offset = len(out) - base
        payload = member.payload
        out += _local(member, payload) + payload + _descriptor(member, payload)
        directory += _central(member, payload, offset)
    start = len(out) - base
    out += directory
    facts = {"entries": len(members), "size": len(directory), "offset": start}
    if end64 is not None:
        wide = {"record": 44, "disk": 0, "first_disk": 0, **facts, "here": len(members), **end64}
        where = len(out) - base
        out += struct.pack(
            "<4sQ2H2I4Q", b"PK\x06\x06", wide["record"], 45, 45, wide["disk"], wide["first_disk"],
            wide["here"], wide["entries"], wide["size"], wide["offset"],
        )  # fmt: skip
        out += struct.pack("<4sIQI", b"PK\x06\x07", 0, wide.get("where", where), wide.get("disks", 1))
    out += before_end
    last = {"disk": 0, "first_disk": 0, **facts, "here": len(members), **(end or {})}
    out += struct.pack(
        "<4s4H2IH", b"PK\x05\x06", last["disk"], last["first_disk"], last["here"] & 0xFFFF,
        last["entries"] & 0xFFFF, last["size"], last["offset"], last.get("comment", len(comment)),
    )  # fmt: skip
    return bytes(out + comment)


def _sizes(member: RawMember, payload: bytes) -> tuple[int, int, int]:
    return zlib.crc32(member.data), len(payload), len(member.data)


def _local(member: RawMember, payload: bytes) -> bytes:
    crc, compressed, size = _sizes(member, payload)
    flags = member.flags
    extra = member.extra
    if member.descriptor is not None:
        flags |= 8
        crc = compressed = size = 0
    if member.wide:
        extra = struct.pack("<HHQQ", 1, 16, size, compressed) + extra
        compressed = size = WIDE
    values: dict[str, int | bytes] = {
        "needed": 20, "flags": flags, "method": member.method, "time": 0x1062, "date": 0x5C22, "crc": crc,
        "compressed": compressed, "size": size, "name": member.name, "extra": extra, **member.local,
    }  # fmt: skip
    name, fields = values["name"], values["extra"]
    assert isinstance(name, bytes)
    assert isinstance(fields, bytes)
    order = ("needed", "flags", "method", "time", "date", "crc", "compressed", "size")
    fixed = struct.pack("<4s5H3I2H", b"PK\x03\x04", *(values[key] for key in order), len(name), len(fields))
    return fixed + name + fields


def _descriptor(member: RawMember, payload: bytes) -> bytes:
    if member.descriptor is None:
        return b""
    width = abs(member.descriptor)
    crc, compressed, size = _sizes(member, payload)
    body = struct.pack("<III" if width == 4 else "<IQQ", crc, compressed, size)
    return (b"PK\x07\x08" if member.descriptor > 0 else b"") + body


def _central(member: RawMember, payload: bytes, offset: int) -> bytes:
    crc, compressed, size = _sizes(member, payload)
    extra = member.extra
    if member.wide:
        extra = struct.pack("<HHQQQ", 1, 24, size, compressed, offset) + extra
        size = compressed = offset = WIDE
    flags = member.flags | (8 if member.descriptor is not None else 0)
    values: dict[str, int | bytes] = {
        "made_by": 0x031E, "needed": 20, "flags": flags, "method": member.method, "time": 0x1062,
        "date": 0x5C22, "crc": crc, "compressed": compressed, "size": size, "name": member.name,
        "extra": extra, "comment": member.comment, "disk": 0, "internal": 0, "external": 0o100644 << 16,
        "offset": offset, **member.central,
    }  # fmt: skip
    name, fields, comment = values["name"], values["extra"], values["comment"]
    assert isinstance(name, bytes)
    assert isinstance(fields, bytes)
    assert isinstance(comment, bytes)
    order = ("made_by", "needed", "flags", "method", "time", "date", "crc", "compressed", "size")
    fixed = struct.pack("<4s6H3I", b"PK\x01\x02", *(values[key] for key in order))
    fixed += struct.pack("<3H", len(name), len(fields), len(comment))
    fixed += struct.pack("<HHII", *(values[key] for key in ("disk", "internal", "external", "offset")))
    return fixed + name + fields + comment
