"""The border to the operating system: its refusals become StorageError with a hint."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wheelslim.errors import Place, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HINTS = {
    errno.ENOSPC: "Free some space, or choose another place with --output-dir or --scratch-dir",
    errno.EDQUOT: "Your quota is used up: choose another place with --output-dir or --scratch-dir",
    errno.EACCES: "Check the permissions of the file and of its directory",
    errno.EPERM: "Check the permissions of the file and of its directory",
    errno.EROFS: "The file system is read-only: choose another place with --output-dir or --scratch-dir",
    errno.ENOENT: "Check the path",
    errno.ENOTDIR: "Check the path",
    errno.EEXIST: "Check the path: this is a file, where a directory has to be",
    errno.EISDIR: "Check the path: this is a directory",
    errno.ENAMETOOLONG: "Choose a shorter name",
    errno.EFBIG: "The file system cannot hold a file of this size",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
}


def storage_error(error: OSError, path: Path) -> StorageError:
    """Describe ``error``, which the operating system raised about ``path``."""
    what = error.strerror or type(error).__name__
    return StorageError(
        what[:1].lower() + what[1:],
        place=Place(artifact=str(path)),
        hint=_HINTS.get(error.errno or 0),
    )


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn every OSError of the block into StorageError about ``path``."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, path) from error
