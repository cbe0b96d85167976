"""The header blocks of one tar member, kept as they are and read through ``tarfile``.

A member's header is a group of 512-byte blocks: pax records (``x``), GNU long names (``L``, ``K``),
then the block with the member's own type. Unchanged members keep the group to the byte, so that
nothing that some tar program wrote (pax keys, number formats, owners) can be lost; a changed member
has its size replaced where the group states it.
"""

from __future__ import annotations

import io
import re
import tarfile
from dataclasses import dataclass

from wheelslim.archive.artifact import MemberType
from wheelslim.errors import ArchiveError, Place

BLOCK_SIZE = 512
_NAME = slice(0, 100)
_SIZE = slice(124, 136)
_CHECKSUM = slice(148, 156)
_TYPE = slice(156, 157)
_OCTAL_LIMIT = 8**11

PAX_TYPES = (b"x", b"X")
GLOBAL_TYPE = b"g"
EXTENSION_TYPES = (*PAX_TYPES, GLOBAL_TYPE, b"L", b"K")
"""Types of the blocks that describe the member after them (POSIX pax, Solaris pax, GNU long names)."""

MAX_EXTENSION = 1 << 20
"""Bytes of pax records or of a long name above which a header is refused."""

_TYPES = {
    tarfile.REGTYPE: MemberType.FILE,
    tarfile.AREGTYPE: MemberType.FILE,
    tarfile.CONTTYPE: MemberType.FILE,
    tarfile.DIRTYPE: MemberType.DIRECTORY,
    tarfile.SYMTYPE: MemberType.SYMLINK,
    tarfile.LNKTYPE: MemberType.HARDLINK,
}

_PAX_RECORD = re.compile(rb"([0-9]{1,20}) ")


@dataclass(frozen=True, slots=True)
class TarHeader:
    """One member as its header group says.

    ``name`` has no leading ``./`` and no trailing ``/``; so has ``link_target`` of a hard link, while
    that of a symbolic link stands as written. ``size`` is the bytes of data that follow (0 but for
    files). ``raw`` is the group, ``globals`` the pax global headers before it, both unaltered.
    """

    name: str
    type: MemberType
    size: int
    mode: int
    link_target: str | None
    raw: bytes
    globals: bytes

    @property
    def padded_size(self) -> int:
        """Bytes of the data with their padding."""
        return padded(self.size)


def padded(size: int) -> int:
    """Round up to whole blocks."""
    return -(-size // BLOCK_SIZE) * BLOCK_SIZE


def parse_header(group: bytes, globals_: bytes) -> TarHeader:
    """Read a header group.

    Raises:
        ArchiveError: it does not parse, or the member is sparse, a device, a pipe or of an unknown
            type.
    """
    info = parse_info(group)
    place = Place(member=info.name)
    # tarfile turns the old plain type with a name that ends in "/" into a directory.
    kind = _TYPES.get(info.type)
    if kind is None or info.sparse is not None:
        raise ArchiveError(
            "a tar member is of a type that conda packages do not have",
            place=place,
            expected="a file, a directory or a link",
            found=f"type {info.type.decode('latin-1')!r}" if kind is None else "a sparse file",
        )
    if kind is not MemberType.FILE and info.size:
        raise ArchiveError(
            "a directory or a link has data",
            place=place,
            expected="0 bytes",
            found=f"{info.size} bytes",
            hint="Tar programs differ in whether they skip it: pack the package again",
        )
    target = None
    if kind is MemberType.SYMLINK:
        target = info.linkname
    elif kind is MemberType.HARDLINK:
        target = plain_name(info.linkname)
    return TarHeader(
        name=plain_name(info.name),
        type=kind,
        size=info.size if kind is MemberType.FILE else 0,
        mode=info.mode,
        link_target=target,
        raw=group,
        globals=globals_,
    )


def parse_info(group: bytes) -> tarfile.TarInfo:
    """Read a header group with ``tarfile``.

    Raises:
        ArchiveError: it does not parse.
    """
    _refuse_sparse(group)
    try:
        with tarfile.TarFile(fileobj=io.BytesIO(group), mode="r", encoding="utf-8") as tar:
            info = tar.next()
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise ArchiveError("a tar header does not parse", found=str(error)) from error
    if info is None or info.size < 0:
        raise ArchiveError("a tar header does not parse")
    return info


def extension_size(block: bytes) -> int:
    """Return the bytes of data of a pax or long-name block.

    Raises:
        ArchiveError: the block's checksum is wrong, or the size is out of bounds.
    """
    try:
        size = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape").size
    except tarfile.TarError as error:
        raise ArchiveError("a tar header does not parse", found=str(error)) from error
    if not 0 <= size <= MAX_EXTENSION:
        raise ArchiveError(
            "a tar header is too large", expected=f"at most {MAX_EXTENSION} bytes", found=f"{size} bytes"
        )
    return size


def block_type(block: bytes) -> bytes:
    """Return the type byte of a header block."""
    return block[_TYPE]


def plain_name(name: str) -> str:
    """Drop what two spellings of one name differ by: ``./`` before it, ``/`` after it."""
    while name.startswith("./"):
        name = name[2:].lstrip("/")
    return name.rstrip("/") if name.strip("/") else name


def resized(group: bytes, size: int) -> bytes:
    """Return the header group of a file with ``size`` instead, all else as it was."""
    parts = []
    in_pax = False
    for block, data in _extensions(group):
        if block_type(block) in PAX_TYPES:
            old = pax_records(data)
            in_pax = in_pax or any(key == b"size" for key, _ in old)
            new = [(key, str(size).encode() if key == b"size" else value) for key, value in old]
            if new != old:
                body = b"".join(_pax_record(key, value) for key, value in new)
                parts += [_with_size(block, len(body)), body.ljust(padded(len(body)), b"\0")]
                continue
        parts += [block, data.ljust(padded(len(data)), b"\0")]
    # A size in a pax record goes before the field, which then need not hold what it cannot.
    return b"".join(parts) + _with_size(group[-BLOCK_SIZE:], 0 if in_pax and size >= _OCTAL_LIMIT else size)


def without_size(group: bytes) -> bytes:
    """Return the header group with everything but the member's size, for comparison."""
    return resized(group, 0)


def pax_records(data: bytes) -> list[tuple[bytes, bytes]]:
    """Split pax records: ``length key=value`` with a line feed, the length in decimal and of it all.

    Raises:
        ArchiveError: a record does not have its length.
    """
    records = []
    position = 0
    while position < len(data) and data[position]:
        match = _PAX_RECORD.match(data, position)
        end = position + int(match[1]) if match else 0
        if match is None or end > len(data) or end <= match.end() or data[end - 1 : end] != b"\n":
            raise ArchiveError("a pax header does not parse", found=repr(data[position : position + 32]))
        key, equals, value = data[match.end() : end - 1].partition(b"=")
        if not equals:
            raise ArchiveError("a pax header does not parse", found=repr(data[position : position + 32]))
        records.append((key, value))
        position = end
    return records


def _pax_record(key: bytes, value: bytes) -> bytes:
    body = b" " + key + b"=" + value + b"\n"
    length = len(body)
    while length != len(body) + len(str(length)):
        length = len(body) + len(str(length))
    return str(length).encode() + body


def _extensions(group: bytes) -> list[tuple[bytes, bytes]]:
    """Split all but the last block of a group into (block, data without padding)."""
    found = []
    position = 0
    while position < len(group) - BLOCK_SIZE:
        block = group[position : position + BLOCK_SIZE]
        size = extension_size(block)
        position += BLOCK_SIZE
        found.append((block, group[position : position + size]))
        position += padded(size)
    return found


def _refuse_sparse(group: bytes) -> None:
    for block, data in _extensions(group):
        keys = [key for key, _ in pax_records(data)] if block_type(block) in PAX_TYPES else []
        if any(key.startswith(b"GNU.sparse.") for key in keys):
            raise ArchiveError(
                "a tar member is a sparse file, which is not supported",
                hint="Pack the package again without --sparse",
            )


def _with_size(block: bytes, size: int) -> bytes:
    """Return a header block with another size and the checksum that goes with it (POSIX ustar)."""
    old = block[_SIZE]
    if size < _OCTAL_LIMIT:
        field = b"%011o" % size + (old[-1:] if old[-1:] in (b"\0", b" ") else b"\0")
    else:  # GNU and star: base 256, told by the first bit.
        field = b"\x80" + size.to_bytes(11, "big")
    body = bytearray(block)
    body[_SIZE] = field
    body[_CHECKSUM] = b" " * 8
    body[_CHECKSUM] = b"%06o\0 " % sum(body)
    return bytes(body)
