"""Fatbin entries, containers and wrappers as bytes.

The numbers come from docs/fatbin-format.md and from the corpus, not from wheelslim's constants.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CONTAINER_MAGIC = 0xBA55ED50
WRAPPER_MAGIC = 0x466243B1
CONTAINER_HEADER = struct.Struct("<IHHQ")
WRAPPER = struct.Struct("<IIQQ")
ENTRY_HEADER = struct.Struct("<HHIQIIHHIIIQQQ")

PTX, CUBIN, LTO, CUBIN_VARIANT, INDEX, RELOCATABLE_PTX, TILE, CONCATENATED = (
    1,
    2,
    8,
    0x10,
    0x20,
    0x40,
    0x80,
    0x100,
)

LINUX_64 = 0x11
LZ4, ZSTD, OBFUSCATED = 0x2000, 0x8000, 0x10000
SUFFIX_A, SUFFIX_F = 0x100000, 0x200000
BLACKWELL = 0x1000000
"""On every cubin of sm_100 and later."""

_KINDS = {"sm": CUBIN, "compute": PTX, "lto": LTO}
_VERSIONS = {CUBIN: (8, 1), PTX: (0, 9), LTO: (65, 1)}
_WORD = re.compile(r"(sm|compute|lto)_(\d+)([af]?)")


@dataclass(frozen=True)
class Entry:
    """One entry. ``payload`` is what lies in the file; it is padded with zeros to 8 bytes.

    ``block`` follows the 64 bytes of the header, the identifier follows it; see ``extension``.
    """

    payload: bytes
    sm: int = 86
    kind: int = CUBIN
    flags: int = LINUX_64
    compressed_size: int = 0
    uncompressed_size: int = 0
    version: tuple[int, int] = (8, 1)
    identifier: bytes = b""
    block: bytes = b""

    @property
    def header_size(self) -> int:
        """64, more where there is an identifier or a block."""
        return 64 + _padded(len(self.identifier)) + _padded(len(self.block))

    @property
    def padded_size(self) -> int:
        """Size of the payload with its padding."""
        return _padded(len(self.payload))

    def pack(self) -> bytes:
        """Header and payload."""
        block_at = 64 if self.block else 0
        name_at = 64 + _padded(len(self.block)) if self.identifier else 0
        header = ENTRY_HEADER.pack(
            self.kind,
            0x0101,
            self.header_size,
            self.padded_size,
            self.compressed_size,
            block_at,
            *self.version,
            self.sm,
            name_at,
            len(self.identifier),
            self.flags,
            0,
            self.uncompressed_size,
        )
        return header + _zero_padded(self.block) + _zero_padded(self.identifier) + _zero_padded(self.payload)


def entry(word: str, *, size: int = 200, seed: object = 0, codec: str | None = None) -> Entry:
    """Make the entry that nvcc would make for ``sm_90a``, ``compute_120`` or ``lto_86``.

    ``size`` is that of the payload before compression (a cubin has about 200 bytes more), ``seed``
    tells payloads of one word apart, ``codec`` is ``zstd`` or ``lz4``.
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(word)
    kind, sm, suffix = _KINDS[match[1]], int(match[2]), match[3]
    flags = LINUX_64 | {"": 0, "a": SUFFIX_A, "f": SUFFIX_F}[suffix]
    if kind == CUBIN and sm >= 100:
        flags |= BLACKWELL
    block = extension(b"") if kind == PTX or sm >= 100 else b""
    made = Entry(payload(word, size, seed), sm, kind, flags, version=_VERSIONS[kind], block=block)
    return compressed(made, codec) if codec else made


def payload(word: str, size: int, seed: object = 0) -> bytes:
    """Bytes that look like the payload of ``word`` and that no other word or seed gives.

    A cubin is an ELF file of machine 190 with noise in it, which cuobjdump accepts; PTX is text.
    """
    noise = hashlib.shake_128(f"{word} {seed}".encode()).digest(size)
    if word.startswith("compute"):
        head = f"//\n.version 9.0\n.target {word.replace('compute', 'sm')}\n.address_size 64\n".encode()
        return (head + b"// " + noise.hex().encode())[: size - 1] + b"\0"
    if word.startswith("lto"):
        return (b"\xed\x43\x4e\x7f" + noise)[:size]
    return cubin(int(re.sub(r"\D", "", word)), noise)


def extension(data: bytes) -> bytes:
    """Make the block that nvcc 13.0 writes for PTX and for sm_100 and later (there with 36 bytes in it).

    Offset and length of ``data``, then ``data`` and one zero byte.
    """
    return struct.pack("<II", 72, len(data)) + data + b"\0"


def cubin(sm: int, noise: bytes) -> bytes:
    """Make a small cubin: ABI version 8, the SM number in bits 8 to 15 of e_flags, one string table."""
    names = b"\0.shstrtab\0"
    body = _zero_padded(names + noise)
    ident = b"\x7fELF\x02\x01\x01\x41\x08".ljust(16, b"\0")
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0x6000002 | sm << 8, 64, 56, 0, 64, 2, 1
    )
    return header + body + bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64, len(names), 0, 0, 1, 0)


def compressed(plain: Entry, codec: str) -> Entry:
    """Compress the payload for real."""
    if codec == "zstd":
        import zstandard

        packed, flag = zstandard.ZstdCompressor().compress(plain.payload), ZSTD
    elif codec == "lz4":
        import lz4.block

        packed, flag = lz4.block.compress(plain.payload, store_size=False), LZ4
    else:
        raise ValueError(codec)
    return replace(
        plain,
        payload=packed,
        flags=plain.flags | flag,
        compressed_size=len(packed),
        uncompressed_size=len(plain.payload),
    )


def concatenated(words: Sequence[str], *, size: int = 200, seed: object = 0) -> Entry:
    """Make one entry that holds several cubins in a single zstd stream (CUDA 13.5 ``--concat``).

    A sub-header is an entry header with the offset in the stream at +4, in place of its own size.
    """
    table, stream = b"", b""
    for word in words:
        part = entry(word, size=size, seed=seed)
        where = (len(stream), len(part.payload), 0, 64 if part.block else 0)
        table += ENTRY_HEADER.pack(part.kind, 0x0101, *where, *part.version, part.sm, 0, 0, part.flags, 0, 0)
        table += _zero_padded(part.block)
        stream += part.payload
    block = struct.pack("<II", len(words), 8 + len(table)) + table
    whole = Entry(stream, sm=0, kind=CONCATENATED, version=(1, 0), block=block)
    return compressed(whole, "zstd")


def container(entries: Iterable[Entry | bytes | str], *, version: int = 1) -> bytes:
    """Make a container; a string is short for ``entry(word)``."""
    body = b"".join(
        one if isinstance(one, bytes) else (entry(one) if isinstance(one, str) else one).pack()
        for one in entries
    )
    return CONTAINER_HEADER.pack(CONTAINER_MAGIC, version, 16, len(body)) + body


def section(containers: Iterable[bytes], *, align: int = 8) -> tuple[bytes, tuple[int, ...]]:
    """Lay containers one after the other; returns the bytes and each container's offset."""
    data, offsets = b"", []
    for one in containers:
        data = data.ljust(_padded(len(data), align), b"\0")
        offsets.append(len(data))
        data += one
    return data.ljust(_padded(len(data)), b"\0"), tuple(offsets)


def wrapper(address: int, *, version: int = 1, last: int = 0) -> bytes:
    """Make the 24 bytes of ``.nvFatBinSegment`` that point at a container."""
    return WRAPPER.pack(WRAPPER_MAGIC, version, address, last)


def _padded(size: int, align: int = 8) -> int:
    return -(-size // align) * align


def _zero_padded(data: bytes) -> bytes:
    return data.ljust(_padded(len(data)), b"\0")
