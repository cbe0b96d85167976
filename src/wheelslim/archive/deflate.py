"""Raw deflate in parallel: blocks of 1 MiB, each with the window of the one before it.

Every block ends with a sync flush, so that the blocks join to one stream; a block that does not
shrink is stored. The output depends on the data and the compression only, not on the number of
threads. Figures: docs/decisions/0006-own-zip-layer.md.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import deque
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Protocol

from wheelslim.archive.inflate import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor, Future
    from types import ModuleType

BLOCK = 1 << 20
"""Bytes of input per block: the loss at its borders is below 0.01 %."""

_WINDOW = 1 << 15
_STORED_MAX = 0xFFFF
_LAST_BLOCK = b"\x03\x00"
"""An empty last block of fixed codes (RFC 1951, 3.2.6): ends a stream that was flushed to a byte."""

_SAMPLES = 16
_SAMPLE = 1 << 12
"""Bytes of each place of a block that a quick try looks at: 6 % of it in all."""

_DOES_NOT_SHRINK = 0.995
"""Above this ratio of the quick try a block is stored, which also makes it quick to install: of
libtorch_cuda.so that costs 0.04 %, of libcublasLt.so 0.25 %."""

_HARDLY_SHRINKS = 0.97
"""Above this ratio a thorough codec gains nothing over a quick one; host code lies below 0.5."""

_THOROUGH = 5
"""zlib-ng's level for the rest: on libtorch_cuda.so, 0.8 % more than zlib at level 6 in a seventh of its
time; level 6 gains 0.15 % and takes a quarter longer."""


class Compression(Enum):
    """How much time a smaller file is worth: about 900, 180 and 60 MB/s and core on host code."""

    FAST = "fast"
    DEFAULT = "default"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Deflated:
    """What went through: sizes in bytes, SHA-256 of the uncompressed bytes as lower-case hex."""

    size: int
    compressed_size: int
    crc: int
    sha256: str


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self, mode: int, /) -> bytes: ...


@cache
def _isal() -> Callable[[int, bytes], _Compressor] | None:
    try:
        from isal import isal_zlib
    except ImportError:
        return None

    def make(level: int, window: bytes) -> _Compressor:
        if window:
            return isal_zlib.compressobj(level, wbits=-15, zdict=window)
        return isal_zlib.compressobj(level, wbits=-15)

    return make


@cache
def _zlib_ng() -> Callable[[int, bytes], _Compressor]:
    module: ModuleType = zlib
    try:
        from zlib_ng import zlib_ng
    except ImportError:
        pass
    else:
        module = zlib_ng

    def make(level: int, window: bytes) -> _Compressor:
        made: _Compressor = (
            module.compressobj(level, zlib.DEFLATED, -15, 9, zdict=window)
            if window
            else module.compressobj(level, zlib.DEFLATED, -15, 9)
        )
        return made

    return make


def deflate_block(block: bytes, window: bytes, compression: Compression) -> bytes:
    """Deflate ``block``, which follows ``window`` (at most 32 KiB), up to a byte border."""
    quick = _isal()
    if compression is Compression.MAX:
        best = _run(_zlib_ng()(9, window), block)
    else:
        ratio = _sampled_ratio(block, quick) if quick is not None else 0.0
        if ratio >= (_HARDLY_SHRINKS if compression is Compression.FAST else _DOES_NOT_SHRINK):
            return _stored(block)
        if quick is not None and (compression is Compression.FAST or ratio >= _HARDLY_SHRINKS):
            best = _run(quick(1, window), block)
        else:
            best = _run(_zlib_ng()(1 if compression is Compression.FAST else _THOROUGH, window), block)
    pieces = -(-len(block) // _STORED_MAX)
    return best if len(best) < len(block) + 5 * pieces else _stored(block)


def _sampled_ratio(block: bytes, quick: Callable[[int, bytes], _Compressor]) -> float:
    """Try the quick codec on samples of a large block; 0 where it is small."""
    if len(block) < 2 * _SAMPLES * _SAMPLE:
        return 0.0
    step = (len(block) - _SAMPLE) // (_SAMPLES - 1)
    sample = b"".join(block[start * step : start * step + _SAMPLE] for start in range(_SAMPLES))
    return len(_run(quick(1, b""), sample)) / len(sample)


def _run(compressor: _Compressor, block: bytes) -> bytes:
    return compressor.compress(block) + compressor.flush(zlib.Z_SYNC_FLUSH)


def _stored(block: bytes) -> bytes:
    """Wrap ``block`` into stored blocks (RFC 1951, 3.2.4), none of them the last."""
    view = memoryview(block)
    parts: list[bytes | memoryview] = []
    for start in range(0, len(block), _STORED_MAX):
        part = view[start : start + _STORED_MAX]
        parts.append(b"\x00" + len(part).to_bytes(2, "little") + (len(part) ^ 0xFFFF).to_bytes(2, "little"))
        parts.append(part)
    return b"".join(parts)


def deflate(
    blocks: Iterable[bytes],
    write: Callable[[bytes], object],
    compression: Compression,
    pool: Executor,
    ahead: int,
) -> Deflated:
    """Deflate ``blocks``, of ``BLOCK`` bytes each but the last, and hand the stream to ``write``.

    At most ``ahead`` blocks are in work at a time; they are hashed here while the pool compresses.
    """
    update_crc = crc32()
    sha = hashlib.sha256()
    size = compressed_size = crc = 0
    window = b""
    work: deque[Future[bytes]] = deque()

    def emit() -> None:
        nonlocal compressed_size
        data = work.popleft().result()
        compressed_size += len(data)
        write(data)

    try:
        for block in blocks:
            work.append(pool.submit(deflate_block, block, window, compression))
            window = block[-_WINDOW:]
            size += len(block)
            crc = update_crc(block, crc)
            sha.update(block)
            while len(work) > ahead or (work and work[0].done()):
                emit()
        while work:
            emit()
    finally:
        for future in work:
            future.cancel()
    write(_LAST_BLOCK)
    return Deflated(size, compressed_size + len(_LAST_BLOCK), crc, sha.hexdigest())


def store(blocks: Iterable[bytes], write: Callable[[bytes], object]) -> Deflated:
    """Hand ``blocks`` to ``write`` as they are, with the same account as ``deflate``."""
    update_crc = crc32()
    sha = hashlib.sha256()
    size = crc = 0
    for block in blocks:
        size += len(block)
        crc = update_crc(block, crc)
        sha.update(block)
        write(block)
    return Deflated(size, size, crc, sha.hexdigest())
