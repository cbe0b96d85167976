"""A scratch file for new bytes that are too many to hold until they are streamed."""

from __future__ import annotations

import os
import tempfile
import threading
from typing import IO, TYPE_CHECKING

from wheelslim.errors import StorageError
from wheelslim.pieces import Spool
from wheelslim.source import Source

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class SpoolFile:
    """Grows with each ``append``; its pieces can be read as long as it is open.

    The file has no name where the system allows that, and appears with the first byte. Threads may
    share it.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """Spool into ``directory``, the system's temporary one unless given."""
        self._directory = directory
        self._file: IO[bytes] | None = None
        self._size = 0
        self._lock = threading.Lock()

    def __enter__(self) -> SpoolFile:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the file; its pieces cannot be read any more."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, data: bytes) -> Spool:
        """Write ``data`` behind what is there; returns the piece that reads it back.

        Raises:
            StorageError: no space, or no permission.
        """
        with self._lock:
            try:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115
                self._file.seek(self._size)
                view = memoryview(data)
                while view:
                    view = view[self._file.write(view) :]
            except OSError as error:
                raise StorageError(
                    f"new device code cannot be written: {os.strerror(error.errno or 0)}",
                    hint="Give another directory with --scratch-dir",
                ) from error
            piece = Spool(Source(self._file.fileno(), self._size, len(data)), 0, len(data))
            self._size += len(data)
            return piece
