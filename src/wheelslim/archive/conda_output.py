"""The tars of a conda package as they are written: into a zip, or into one bzip2 file."""

from __future__ import annotations

import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.compressed import Codec, compressor
from wheelslim.archive.conda_container import METADATA, component_name
from wheelslim.archive.tar_stream import TarWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wheelslim.archive.conda_container import Container
    from wheelslim.archive.zip_reader import ZipEntry
    from wheelslim.source import Source

_METADATA_TEXT = b'{"conda_pkg_format_version": 2}'
_UNIX = 3
_MODE = 0o600 << 16
_ZIP64_FROM = zipfile.ZIP64_LIMIT - (64 << 20)
"""Uncompressed bytes from which a member gets ZIP64 fields: incompressible data grow by less."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Compression:
    """zstd level (1 to 22) and threads."""

    level: int
    threads: int


class CondaWriter:
    """Writes a ``.conda``; members keep dates and attributes of ``like``, the package it comes from."""

    def __init__(self, path: Path, stem: str, compression: Compression, like: Container) -> None:
        """Write to ``path``, naming the tars after ``stem``."""
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)
        self._stem = stem
        self._compression = compression
        self._like = {component_name(entry.name) or entry.name: entry for entry in like.entries}

    def copy(self, entry: ZipEntry, data: Source, progress: Callable[[int], None]) -> None:
        """Copy a member of the original zip; the tars get the new stem."""
        name = component_name(entry.name)
        info = self._info(f"{name}-{self._stem}.tar.zst" if name else entry.name, entry)
        with self._zip.open(info, "w", force_zip64=data.size >= _ZIP64_FROM) as out:
            for block in data.blocks():
                out.write(block)
                progress(len(block))

    def metadata(self) -> None:
        """Write ``metadata.json`` for a package that had none."""
        self._zip.writestr(self._info(METADATA, None), _METADATA_TEXT)

    @contextmanager
    def tar(self, name: str, size: int) -> Iterator[TarWriter]:
        """Write one of the two tars, ``info`` or ``pkg``; ``size`` is its bytes uncompressed."""
        info = self._info(f"{name}-{self._stem}.tar.zst", self._like.get(name))
        with self._zip.open(info, "w", force_zip64=size >= _ZIP64_FROM) as out:
            packer = compressor(Codec.ZSTD, self._compression.level, self._compression.threads, size)
            writer = TarWriter(lambda data: out.write(packer.compress(data)))
            yield writer
            writer.close()
            out.write(packer.flush())

    def close(self) -> None:
        """Write the central directory."""
        self._zip.close()

    @staticmethod
    def _info(name: str, like: ZipEntry | None) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, _EPOCH if like is None else _date(like))
        info.create_system = _UNIX if like is None else like.made_by >> 8
        info.external_attr = _MODE if like is None else like.external_attributes
        return info


class TarBz2Writer:
    """Writes a ``.tar.bz2``."""

    def __init__(self, path: Path) -> None:
        """Write to ``path``."""
        self._file = path.open("wb")

    @contextmanager
    def tar(self) -> Iterator[TarWriter]:
        """Write the only tar."""
        packer = compressor(Codec.BZIP2, 0, 1, 0)
        writer = TarWriter(lambda data: self._file.write(packer.compress(data)))
        yield writer
        writer.close()
        self._file.write(packer.flush())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _date(entry: ZipEntry) -> tuple[int, int, int, int, int, int]:
    """Unpack the date and time of a zip entry (MS-DOS: two-second steps)."""
    date, time = entry.date, entry.time
    return (
        (date >> 9) + 1980, date >> 5 & 0xF, date & 0x1F, time >> 11, time >> 5 & 0x3F, (time & 0x1F) * 2,
    )  # fmt: skip
