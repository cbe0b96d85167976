"""One run at a time over one tree."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_errors
from wheelslim.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold an advisory lock on the directory ``root``, where the file system knows locks.

    Raises:
        StorageError: another run holds it.
    """
    if sys.platform == "win32":
        yield
        return
    with storage_errors(root):
        fd = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            flock(fd, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            raise StorageError("another run of wheelslim works on this tree", hint="Wait for it") from error
        except OSError:  # This file system knows no locks.
            pass
        yield
    finally:
        os.close(fd)
