"""The compressed streams of conda packages, zstd and bzip2, read and written in bounded blocks."""

from __future__ import annotations

import bz2
import sys
import zlib
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from wheelslim.errors import ArchiveError, Place
from wheelslim.source import BLOCK

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wheelslim.source import Source

DEFAULT_LEVEL = 19
"""conda's own zstd level: ``ZSTD_COMPRESS_LEVEL`` of conda-package-handling 2.6."""

MAX_LEVEL = 22
_READ = 256 << 10
_BZ2_LEVEL = 9

_JOB_SIZE = 16 << 20
"""Bytes that one zstd thread takes at a time, half of what level 19 has by default.

It costs no size and no time, and 240 MB less memory on two threads (measured on libnccl: 357 MB
against 594 MB, zstd 1.5.7).
"""

_OVERLAP = 8
"""How much of the job before it a job sees: half a window, where level 19 has a whole one.

A quarter less time for 0.04 % of size (measured on 64 MB of libtorch_cpu).
"""

_MAX_THREADS = 8
"""Threads beyond which a run would take gigabytes: at level 19 each needs about 150 MB."""


class Codec(Enum):
    """How a tar stream is compressed."""

    ZSTD = "zstd"
    BZIP2 = "bzip2"


class _Decompressor(Protocol):
    """What ``bz2.BZ2Decompressor`` and ``zstd.ZstdDecompressor`` have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Compressor(Protocol):
    """What ``bz2.BZ2Compressor`` and ``zstd.ZstdCompressor`` have in common."""

    def compress(self, data: bytes | memoryview, /) -> bytes:
        """Take some bytes in; return what is ready to be written."""
        ...

    def flush(self) -> bytes:
        """End the stream; return its last bytes."""
        ...


def decompressed(
    source: Source, codec: Codec, crc: int | None = None, progress: Callable[[int], None] | None = None
) -> Iterator[bytes]:
    """Yield what ``source`` holds, decompressed, in blocks of at most 1 MiB.

    ``crc`` is the CRC-32 that the compressed bytes must have, checked at the end. The window is
    limited to 128 MiB, which is what zstd, and so every conda client, accepts by default.

    Raises:
        ArchiveError: the stream is truncated or corrupt.
    """
    decompressor: _Decompressor | None = None
    position, running, streams = 0, 0, 0
    for chunk in source.blocks(block=_READ):
        if crc is not None:
            running = zlib.crc32(chunk, running)
        data = chunk
        while True:
            if decompressor is None:
                if not data:
                    break
                decompressor = _decompressor(codec)
                streams += 1
            try:
                block = decompressor.decompress(data, BLOCK)
            except (zstd.ZstdError, OSError, ValueError) as error:
                raise ArchiveError(
                    f"the {codec.value} stream is corrupt", place=Place(offset=position), found=str(error)
                ) from error
            if block:
                yield block
            data = b""
            if decompressor.eof:
                data, decompressor = decompressor.unused_data, None
            elif decompressor.needs_input:
                break
        position += len(chunk)
        if progress is not None:
            progress(len(chunk))
    if decompressor is not None or not streams:
        raise ArchiveError(
            f"the {codec.value} stream is truncated",
            place=Place(offset=position),
            expected="the end of the stream",
            found="the end of the file",
            hint="Download or build the package again",
        )
    if crc is not None and running != crc:
        raise ArchiveError(
            "the compressed bytes do not have their CRC-32", expected=f"{crc:08x}", found=f"{running:08x}"
        )


def _decompressor(codec: Codec) -> _Decompressor:
    return bz2.BZ2Decompressor() if codec is Codec.BZIP2 else zstd.ZstdDecompressor()


def compressor(codec: Codec, level: int, threads: int, size: int | None) -> Compressor:
    """Return a compressor for exactly ``size`` bytes, None where that is not known.

    ``level`` (1 to 22) is zstd's alone; bzip2 always has its best, 9. At least one zstd worker is
    used whatever ``threads`` says, since workers cut the stream otherwise than no worker does: the
    same input then gives the same bytes on any machine.
    """
    if codec is Codec.BZIP2:
        return bz2.BZ2Compressor(_BZ2_LEVEL)
    made: zstd.ZstdCompressor = zstd.ZstdCompressor(
        options={
            zstd.CompressionParameter.compression_level: level,
            zstd.CompressionParameter.nb_workers: max(1, min(threads, _MAX_THREADS)),
            zstd.CompressionParameter.job_size: _JOB_SIZE,
            zstd.CompressionParameter.overlap_log: _OVERLAP,
        }
    )
    if size is not None:  # Decompressors allocate no more than they need when the frame says its size.
        made.set_pledged_input_size(size)
    return made
