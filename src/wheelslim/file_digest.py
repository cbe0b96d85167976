"""The SHA-256 of a file, taken in a thread of its own while other work goes on."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_errors
from wheelslim.file_identity import FileIdentity
from wheelslim.source import BLOCK

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class FileDigest:
    """Reads ``path`` from ``start`` on, in the background; leaving the context stops it."""

    def __init__(self, path: Path) -> None:
        """Get ready."""
        self._path = path
        self._stop = threading.Event()
        self._identity: FileIdentity | None = None
        self._pool = ThreadPoolExecutor(1, "digest")

    def start(self) -> None:
        """Begin to read; what goes wrong then is raised by ``hexdigest``.

        Raises:
            StorageError: the operating system does not let the file be looked at.
        """
        with storage_errors(self._path):
            self._identity = FileIdentity.of(self._path.stat())
        self._future = self._pool.submit(self._run)

    def hexdigest(self) -> str:
        """Wait for the SHA-256, in lower-case hex.

        Raises:
            StorageError: the operating system refuses.
        """
        return self._future.result()

    def check_unchanged(self) -> None:
        """Make sure that what was read until now was the file as it was at ``start``.

        Raises:
            StorageError: somebody replaced it or wrote to it.
        """
        if self._identity is not None:
            self._identity.check(self._path)

    def _run(self) -> str:
        digest = hashlib.sha256()
        with storage_errors(self._path), self._path.open("rb", buffering=0) as file:
            while not self._stop.is_set() and (block := file.read(BLOCK)):
                digest.update(block)
        return digest.hexdigest()

    def __enter__(self) -> FileDigest:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading."""
        self._stop.set()
        self._pool.shutdown()
