"""The records of a zip file, as structs.

Format: PKWARE APPNOTE.TXT 6.3.10, all fields little-endian. A field at its sentinel (all ones) has
its value in the ZIP64 extra field, 0x0001.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL_SIGNATURE = b"PK\x03\x04"
CENTRAL_SIGNATURE = b"PK\x01\x02"
END_SIGNATURE = b"PK\x05\x06"
END64_SIGNATURE = b"PK\x06\x06"
LOCATOR64_SIGNATURE = b"PK\x06\x07"
DESCRIPTOR_SIGNATURE = b"PK\x07\x08"

LOCAL = Struct("<4s5H3I2H")
"""Signature, needed, flags, method, time, date, crc, compressed, size, name length, extra length."""

CENTRAL = Struct("<4s6H3I5H2I")
"""Signature, made by, needed, flags, method, time, date, crc, compressed, size, lengths of name,
extra and comment, disk, internal attributes, external attributes, offset of the local header."""

END = Struct("<4s4H2IH")
"""Signature, disk, directory's disk, entries here, entries, directory size, offset, comment length."""

END64 = Struct("<4sQ2H2I4Q")
"""Signature, record size, made by, needed, disk, directory's disk, entries here, entries, directory
size, offset."""

LOCATOR64 = Struct("<4sIQI")
"""Signature, disk, offset of the ZIP64 end record, disks."""

U16_MAX = 0xFFFF
U32_MAX = 0xFFFFFFFF
ZIP64_EXTRA = 0x0001
ZIP64_NEEDED = 45
MAX_END = END.size + U16_MAX


class Method:
    """The compression methods that wheelslim reads and writes; plain numbers, like ``Flag``."""

    STORED = 0
    DEFLATED = 8


class Flag:
    """Bits of the general purpose flag that matter here; plain numbers, for they are tested often."""

    ENCRYPTED = 1 << 0
    DESCRIPTOR = 1 << 3
    PATCHED = 1 << 5
    STRONG_ENCRYPTION = 1 << 6
    UTF8 = 1 << 11
    MASKED_HEADERS = 1 << 13


def extra_fields(extra: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield each extra field: its number, its content, and all its bytes.

    Bytes at the end that make no whole field (padding of old aligners) come as number -1.
    """
    position = 0
    while position + 4 <= len(extra):
        number = int.from_bytes(extra[position : position + 2], "little")
        end = position + 4 + int.from_bytes(extra[position + 2 : position + 4], "little")
        if end > len(extra):
            break
        yield number, extra[position + 4 : end], extra[position:end]
        position = end
    if position < len(extra):
        yield -1, b"", extra[position:]


def without_zip64(extra: bytes) -> bytes:
    """Return the extra fields other than ZIP64, which is written anew where it is needed."""
    return b"".join(whole for number, _, whole in extra_fields(extra) if number != ZIP64_EXTRA)


def zip64_extra(values: list[int]) -> bytes:
    """Return the ZIP64 extra field that holds ``values``, in the order the format wants."""
    body = b"".join(value.to_bytes(8, "little") for value in values)
    return ZIP64_EXTRA.to_bytes(2, "little") + len(body).to_bytes(2, "little") + body
