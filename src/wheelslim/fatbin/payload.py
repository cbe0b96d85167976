"""The payload of an entry, plain: decompressed, with every size that the header claims checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.errors import FatbinFormatError, Place
from wheelslim.fatbin.layout import EntryFlag
from wheelslim.fatbin.model import Compression

if TYPE_CHECKING:
    from wheelslim.fatbin.model import Entry
    from wheelslim.source import Source

PLAIN_LIMIT = 1 << 30
"""The largest plain payload that is read, in bytes; the largest measured is a cubin of 42 MB (PyTorch)."""

ZSTD_LEVEL = 19
"""What nvcc's ``--compress-mode=size`` is: the same plain bytes give the same frame (measured, CUDA 13.0).

Its ``balance`` is level 5. PyTorch's wheels are built with ``size``.
"""

_LZ4_MAX_RATIO = 255
"""A byte of an LZ4 block stands for at most 255 plain ones (LZ4 block format: length bytes)."""

_LZ4_SLACK = 64


def read_payload(source: Source, entry: Entry, limit: int = PLAIN_LIMIT) -> bytes:
    """Return the plain payload of ``entry``, whose offsets count from the start of ``source``.

    A payload that is stored plain comes with its padding, since its header has no size without it.
    zstd payloads are one frame, LZ4 payloads one raw block (measured).

    Raises:
        FatbinFormatError: the payload is obfuscated, larger than ``limit`` bytes, does not
            decompress, or is not as long as its header says.
    """
    place = Place(offset=entry.offset)
    if entry.flags & EntryFlag.OBFUSCATED:
        raise FatbinFormatError("the payload is obfuscated", place=place)
    compression = entry.compression
    plain_size = entry.payload_size if compression is Compression.NONE else entry.plain_size
    if plain_size > limit:
        raise FatbinFormatError(
            "the payload is too large to be read",
            place=place,
            expected=f"at most {limit} bytes",
            found=str(plain_size),
        )
    stored = source.read(entry.payload_offset, entry.payload_size)
    if compression is Compression.NONE:
        return stored
    try:
        plain = _unzstd(stored, plain_size) if compression is Compression.ZSTD else _unlz4(stored, plain_size)
    except ValueError as error:
        raise FatbinFormatError(f"the payload does not decompress: {error}", place=place) from error
    if len(plain) != plain_size:
        raise FatbinFormatError(
            "the payload has another size than its header says",
            place=place,
            expected=f"{plain_size} bytes",
            found=f"{len(plain)} bytes",
        )
    return plain


def compress(plain: bytes, level: int = ZSTD_LEVEL) -> bytes:
    """Compress as nvcc does: one zstd frame that names its content's size, no checksum (measured)."""
    import zstandard

    return zstandard.ZstdCompressor(level=level).compress(plain)


def _unzstd(stored: bytes, plain_size: int) -> bytes:
    import zstandard

    # A frame that names its size gets a buffer of that size, so the size is looked at first.
    try:
        named = zstandard.get_frame_parameters(stored).content_size
        if named not in (plain_size, zstandard.CONTENTSIZE_UNKNOWN):
            raise ValueError(f"the zstd frame holds {named} bytes, not {plain_size}")
        if not plain_size:
            return b""
        decompressor = zstandard.ZstdDecompressor()
        return decompressor.decompress(stored, max_output_size=plain_size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def _unlz4(stored: bytes, plain_size: int) -> bytes:
    import lz4.block

    if plain_size > len(stored) * _LZ4_MAX_RATIO + _LZ4_SLACK:
        raise ValueError(f"{len(stored)} bytes of LZ4 cannot hold {plain_size}")
    try:
        plain: bytes = lz4.block.decompress(stored, uncompressed_size=plain_size)
    except lz4.block.LZ4BlockError as error:
        raise ValueError(str(error)) from error
    return plain
