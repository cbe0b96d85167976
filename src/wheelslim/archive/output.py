"""Outputs that appear whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from wheelslim.archive.scratch import named_temporary, remove_leftovers
from wheelslim.archive.storage import storage_errors
from wheelslim.errors import Place, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def atomic_output(final: Path, force: bool) -> Iterator[Path]:
    """Yield the path of an empty temporary file beside ``final``, which becomes ``final`` at the end.

    The temporary file is flushed to disk before it gets its name, and removed when the block
    raises anything at all, KeyboardInterrupt included. Its mode follows the umask, as an ordinary
    file's would. The directory is made where it is missing.

    Raises:
        UsageError: ``final`` exists, and ``force`` is false.
        StorageError: the operating system refuses.
    """
    refuse_existing(final, force)
    with storage_errors(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(final.parent)
        lock, temporary = named_temporary(final.parent)
    if os.name == "nt":  # An open file cannot be renamed there.
        os.close(lock)
        lock = -1
    try:
        yield temporary
        flush(temporary)
        refuse_existing(final, force)
        with storage_errors(final):
            temporary.replace(final)
            flush_directory(final.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    finally:
        if lock >= 0:
            os.close(lock)


def refuse_existing(final: Path, force: bool) -> None:
    """Raise UsageError when ``final`` exists and ``force`` is false."""
    if not force and os.path.lexists(final):
        raise UsageError(
            "the output exists already",
            place=Place(artifact=str(final)),
            hint="Give --force to replace it, or another --output-dir",
        )


def flush(path: Path) -> None:
    """Wait until a file is on disk.

    Raises:
        StorageError: the operating system refuses.
    """
    with storage_errors(path):
        _synchronize(path, os.O_RDWR)


def flush_directory(directory: Path) -> None:
    """Make names in ``directory`` last through a loss of power, where the system and the file system can."""
    with suppress(OSError):  # Windows opens no directory; some network file systems refuse.
        _synchronize(directory, os.O_RDONLY)


def _synchronize(path: Path, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
