"""The files that are books, read: regular files alone, never through a link, never waiting for a pipe."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_errors
from wheelslim.environment.replacement import opened
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from pathlib import Path


def read_book(path: Path) -> bytes:
    """Return a book whole.

    Raises:
        ArchiveError: it, or the directory that it is in, is something else than its name says.
        StorageError: the operating system refuses.
    """
    _check_plain(path)
    with opened(path) as original:
        return b"".join(original.source.blocks())


def check_readable(path: Path) -> None:
    """Make sure that a book, if it is there, can be read; raises as ``read_book`` does."""
    if _exists(path):
        _check_plain(path)
        with opened(path):
            pass


def read_if_there(path: Path) -> bytes:
    """Return a book whole, no bytes where it is not there; raises as ``read_book`` does."""
    return read_book(path) if _exists(path) else b""


def _exists(path: Path) -> bool:
    with storage_errors(path):
        try:
            path.lstat()
        except FileNotFoundError:
            return False
    return True


def _check_plain(path: Path) -> None:
    with storage_errors(path):
        found = None if stat.S_ISREG(path.lstat().st_mode) else "no regular file"
        if stat.S_ISLNK(path.parent.lstat().st_mode):
            found = "a symbolic link as its directory"
    if found is not None:
        raise ArchiveError(
            "the books of packages are kept in regular files only",
            place=Place(artifact=str(path)),
            found=found,
            hint="Install the package again",
        )
