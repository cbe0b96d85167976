"""A tar kept for its second reading, where the first one was slow.

bzip2 takes a minute or more per GB to read (measured: 18 MB/s). zstd's quickest level keeps the
same stream in about the space of the package, to be read at once.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from wheelslim.archive.compressed import Codec, compressor
from wheelslim.archive.storage import storage_errors
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wheelslim.archive.conda_container import Component
    from wheelslim.archive.scratch import ScratchFile

_LEVEL = 1


class QuickCopy:
    """What passes through is written, compressed, to a scratch file of its own."""

    def __init__(self, file: ScratchFile, directory: Path) -> None:
        """Write to ``file``, which lies in ``directory`` and is empty."""
        self._file = file
        self._directory = directory
        self._size = 0

    def passing(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield ``blocks``, and keep them.

        Raises:
            StorageError: the scratch directory is full.
        """
        packer = compressor(Codec.ZSTD, _LEVEL, 1, None)
        for block in blocks:
            self._write(packer.compress(block))
            yield block
        self._write(packer.flush())

    def component(self, like: Component) -> Component:
        """Return the component ``like``, whose tar passed through, to be read from the copy."""
        return replace(like, source=Source(self._file.fd, 0, self._size), codec=Codec.ZSTD, crc=None)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        with storage_errors(self._directory):
            os.lseek(self._file.fd, self._size, os.SEEK_SET)
            while view:
                view = view[os.write(self._file.fd, view) :]
        self._size += len(data)
