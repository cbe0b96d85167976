"""Scratch files: where members lie inflated while they are looked into."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_errors

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

PREFIX = ".wheelslim-"
"""First characters of the name of every temporary file, by which leftovers are recognised."""

_NAMES: set[Path] = set()
"""Every name that this process gave to a temporary file, from before the file is there."""

_BINARY = getattr(os, "O_BINARY", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)


def named_temporary(directory: Path, mode: int = 0o666) -> tuple[int, Path]:
    """Create an empty file in ``directory``; returns its descriptor and its path.

    The descriptor holds an advisory lock, which tells a running owner from one that was killed.

    Raises:
        OSError: as ``os.open`` does.
    """
    while True:
        path = directory / f"{PREFIX}{secrets.token_hex(8)}.tmp"
        _NAMES.add(path)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY | _CLOEXEC, mode)
        except FileExistsError:
            _NAMES.discard(path)
            continue
        if _lock(fd) is not Lock.TAKEN:
            return fd, path
        _NAMES.discard(path)
        os.close(fd)


def remove_own() -> None:
    """Remove what is left of this process's temporary files: for its end.

    A signal can raise between any two steps, also between making a file and taking care of it.
    """
    while _NAMES:
        with suppress(OSError):
            _NAMES.pop().unlink()


def remove_leftovers(directory: Path) -> int:
    """Remove temporary files in ``directory`` whose owner was killed; returns how many.

    A file that a running process still holds is left alone, and so is all of it on a system
    without advisory locks.
    """
    removed = 0
    with suppress(OSError):
        for path in directory.glob(f"{PREFIX}*.tmp"):
            with suppress(OSError):
                fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
                try:
                    if _lock(fd) is Lock.OURS:
                        path.unlink()
                        removed += 1
                finally:
                    os.close(fd)
    return removed


class Lock(Enum):
    """What an attempt to lock a temporary file gave."""

    OURS = "ours"
    TAKEN = "taken"
    UNKNOWN = "unknown"


def _lock(fd: int) -> Lock:
    if sys.platform == "win32":
        return Lock.UNKNOWN
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return Lock.TAKEN
    except OSError:  # This file system knows no locks.
        return Lock.UNKNOWN
    return Lock.OURS


class ScratchFile:
    """One temporary file without a name, held by its descriptor ``fd``."""

    def __init__(self, directory: Path) -> None:
        """Create it in ``directory``.

        Raises:
            StorageError: the operating system refuses.
        """
        self._named: Path | None = None
        with storage_errors(directory):
            self.fd, path = named_temporary(directory, 0o600)
            try:
                path.unlink()
            except OSError:  # Windows keeps the name of an open file: it goes when the file is closed.
                self._named = path

    def shrink(self, size: int) -> None:
        """Give back the space of what lies beyond ``size`` bytes."""
        if os.fstat(self.fd).st_size > size:
            os.ftruncate(self.fd, size)

    def close(self) -> None:
        """Give the space back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self._named is not None:
            with suppress(OSError):
                self._named.unlink(missing_ok=True)
            self._named = None


class Scratch:
    """Scratch files in one directory, made when needed and used again.

    Writing over the pages of a file that is done with costs a tenth of filling fresh ones. Safe to
    share among threads: a file that one of them takes has shrunk before another may take one.
    """

    def __init__(self, directory: Path) -> None:
        """Use ``directory``, which is made at the first file where it is missing."""
        self.directory = directory
        self._free: list[ScratchFile] = []
        self._all: list[ScratchFile] = []
        self._taking = threading.Lock()

    def take(self, size: int | None = None) -> ScratchFile:
        """Return a file for the caller alone, until given back. Its old content is undefined.

        With ``size``, what it takes on disk from now on is about that at most, and the other files
        that are free are given up.

        Raises:
            StorageError: the operating system refuses.
        """
        with self._taking:
            if self._free:
                file = self._free.pop()
                if size is not None:
                    self._give_up_free()
                    file.shrink(size)
                return file
            if not self._all:
                with storage_errors(self.directory):
                    self.directory.mkdir(parents=True, exist_ok=True)
                remove_leftovers(self.directory)
            file = ScratchFile(self.directory)
            self._all.append(file)
            return file

    def _give_up_free(self) -> None:
        while self._free:
            file = self._free.pop()
            self._all.remove(file)
            file.close()

    def give_back(self, file: ScratchFile) -> None:
        """Let the next caller of ``take`` have ``file``."""
        self._free.append(file)

    def close(self) -> None:
        """Free everything."""
        self._free.clear()
        while self._all:
            self._all.pop().close()

    def __enter__(self) -> Scratch:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Free everything."""
        self.close()
