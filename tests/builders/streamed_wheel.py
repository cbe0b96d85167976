"""Wheels around streamed libraries, made as a stream too."""

from __future__ import annotations

import base64
import hashlib
import zipfile
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

from builders.wheel import DATE, Wheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from builders.streamed import StreamedLibrary

_LARGE = 1 << 14
"""Blocks from this size on come from a pool: each is deflated once, however often it comes."""

_SMALL_JOINED = 1 << 10
"""How many small blocks are deflated together."""

_LAST_BLOCK = b"\x03\x00"
"""An empty last block (RFC 1951, 3.2.6)."""


def write_wheel(library: StreamedLibrary, directory: Path, name: str = "synthetic") -> Path:
    """Put the library into a wheel, as ``NAME/libNAME.so``; returns the wheel's path."""
    member = f"{name}/lib{name}.so"
    wheel = Wheel({f"{name}/__init__.py": b""}, name=name)
    path = directory / wheel.file_name
    digest = hashlib.sha256()
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo(member, DATE)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o100755 << 16
        add_streamed(archive, info, _hashed(library.blocks(), digest))
        hashed = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        rows = wheel.members()[f"{wheel.folder}/RECORD"].data
        record = f"{member},sha256={hashed},{library.size}\n".encode() + rows
        rest = Wheel(wheel.files, name=name, record=record)
        for name_in_wheel, content in rest.members().items():
            archive.writestr(zipfile.ZipInfo(name_in_wheel, DATE), content.data)
    return path


def add_streamed(archive: zipfile.ZipFile, info: zipfile.ZipInfo, blocks: Iterable[bytes]) -> None:
    """Add a deflated member of any size; what repeats in ``blocks`` is deflated once.

    zipfile can only deflate everything itself, so the data are written past it.
    """
    assert archive.fp is not None
    info.header_offset, info.CRC, info.file_size, info.compress_size = archive.fp.tell(), 0, 0, 0
    archive.fp.write(info.FileHeader(zip64=True))
    for plain, packed in _deflated(blocks):
        info.CRC = zlib.crc32(plain, info.CRC)
        info.file_size += len(plain)
        info.compress_size += len(packed)
        archive.fp.write(packed)
    archive.fp.write(_LAST_BLOCK)
    info.compress_size += len(_LAST_BLOCK)
    end = archive.fp.tell()
    archive.fp.seek(info.header_offset)
    archive.fp.write(info.FileHeader(zip64=True))
    archive.fp.seek(end)
    archive.filelist.append(info)
    archive.NameToInfo[info.filename] = info
    archive.start_dir = end


def _hashed(blocks: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for block in blocks:
        digest.update(block)
        yield block


def _deflated(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the plain bytes and their deflate stream, which ends with a full flush: the streams join."""
    small: list[bytes] = []
    for block in blocks:
        if len(block) < _LARGE:
            small.append(block)
            if len(small) < _SMALL_JOINED:
                continue
        if small:
            plain = b"".join(small)
            small = []
            yield plain, _full_flush(plain)
        if len(block) >= _LARGE:
            yield block, _once(block)
    plain = b"".join(small)
    yield plain, _full_flush(plain)


@lru_cache(maxsize=256)
def _once(block: bytes) -> bytes:
    return _full_flush(block)


def _full_flush(block: bytes) -> bytes:
    deflater = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflater.compress(block) + deflater.flush(zlib.Z_FULL_FLUSH)
