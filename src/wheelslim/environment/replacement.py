"""One file replaced by another with the same name, mode, owner, times and extended attributes.

The new file is written beside the old one and takes its name in one step, so that it gets an inode
of its own: hard links elsewhere, and processes that have the old file open, keep the old content.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.file_copy import write_at
from wheelslim.archive.output import flush_directory
from wheelslim.archive.scratch import named_temporary
from wheelslim.archive.storage import storage_errors
from wheelslim.errors import Place, StorageError
from wheelslim.file_identity import FileIdentity
from wheelslim.pieces import Zeros, stream
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from wheelslim.pieces import Piece

_HOLE = 1 << 16
"""Bytes of zeros from which on a hole is left in the file instead of writing them."""

_OPEN = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
_SET_BY_THE_SYSTEM = ("security.selinux", "security.ima", "security.evm")
"""Attributes that the kernel gives to every new file by its own rules."""

_ZEROS = bytes(1 << 20)


@dataclass(frozen=True)
class Original:
    """A regular file held open: its path, its content, and its status as it was opened."""

    path: Path
    source: Source
    status: os.stat_result

    def check_unmoved(self) -> None:
        """Make sure that the name still leads to the file as it was.

        Raises:
            StorageError: somebody replaced it or wrote to it.
        """
        FileIdentity.of(self.status).check(self.path, follow=False)


@contextmanager
def opened(path: Path) -> Iterator[Original]:
    """Open a regular file for reading; a symbolic link is not followed.

    Raises:
        StorageError: the operating system refuses, or the name leads to something else by now.
    """
    with storage_errors(path):
        fd = os.open(path, _OPEN)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise StorageError("no longer a regular file", place=Place(artifact=str(path)))
        with storage_errors(path):
            yield Original(path, Source(fd, 0, status.st_size), status)
    finally:
        os.close(fd)


def check_writable(directory: Path) -> None:
    """Make sure that files of ``directory`` can be replaced.

    A directory without any write bit counts as read-only for the superuser too: that is how stores
    that are shared (Nix, Guix) say that nobody may write there.

    Raises:
        StorageError: they cannot.
    """
    place = Place(artifact=str(directory))
    with storage_errors(directory):
        mode = directory.stat().st_mode
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise StorageError("the directory is read-only", place=place, hint="Slim a copy of the tree")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StorageError(
            "the directory cannot be written to",
            place=place,
            hint="Run as its owner, or slim a copy of the tree",
        )


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: size in bytes, SHA-256 as lower-case hex."""

    size: int
    sha256: str


class Replacement:
    """The new file, as long as it has a temporary name; made by ``beside``."""

    def __init__(self, directory: Path) -> None:
        """Create an empty file in ``directory`` that only its owner can read.

        Raises:
            OSError: as ``os.open`` does.
        """
        self.fd, self.path = named_temporary(directory, 0o600)

    def fill(self, pieces: Iterable[Piece], source: Source, checked: Callable[[], None]) -> Written:
        """Write the pieces; long runs of zeros become holes. ``checked`` is called between blocks."""
        digest = hashlib.sha256()
        position = 0
        for run in _runs(pieces):
            if isinstance(run, Zeros):
                left = run.size
                while left:
                    step = min(left, len(_ZEROS))
                    digest.update(_ZEROS[:step])
                    left -= step
                position += run.size
                continue
            for block in stream(run, source):
                checked()
                write_at(self.fd, block, position)
                digest.update(block)
                position += len(block)
        os.ftruncate(self.fd, position)
        return Written(position, digest.hexdigest())

    def keep_metadata(self, original: int, status: os.stat_result) -> None:
        """Take owner, mode, extended attributes and times from the open file ``original``.

        Raises:
            OSError: one of them cannot be kept; an owner only the superuser can give away.
        """
        mine = os.fstat(self.fd)
        if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
            os.fchown(self.fd, status.st_uid, status.st_gid)
        os.fchmod(self.fd, stat.S_IMODE(status.st_mode))
        _copy_attributes(original, self.fd)
        os.utime(self.fd, ns=(status.st_atime_ns, status.st_mtime_ns))

    def take_name(self, path: Path) -> None:
        """Flush the file to disk and give it the name ``path``.

        Raises:
            OSError: as ``os.replace`` does; the old file is as it was then.
        """
        os.fsync(self.fd)
        self.path.replace(path)
        flush_directory(path.parent)


@contextmanager
def beside(path: Path) -> Iterator[Replacement]:
    """Yield a new empty file in the directory of ``path``; it is removed unless it took its name.

    Raises:
        StorageError: the operating system refuses.
    """
    with storage_errors(path):
        replacement = Replacement(path.parent)
        try:
            yield replacement
        finally:
            with suppress(OSError):
                replacement.path.unlink(missing_ok=True)
            os.close(replacement.fd)


def replace_text(path: Path, data: bytes, like: Path | None = None) -> None:
    """Give a small file new content; it keeps its metadata, or takes that of ``like`` when it is new.

    Raises:
        StorageError: the operating system refuses; the old file is as it was then.
    """
    model = path if os.path.lexists(path) or like is None else like
    with opened(model) as original, beside(path) as new:
        write_at(new.fd, data, 0)
        new.keep_metadata(original.source.fd, original.status)
        new.take_name(path)


def relink(path: Path, link: Path) -> None:
    """Let the existing name ``link`` lead to the file ``path``, in one step.

    Raises:
        OSError: the operating system refuses; ``link`` is as it was then.
    """
    fd, temporary = named_temporary(link.parent, 0o600)
    try:
        temporary.unlink()
        os.link(path, temporary, follow_symlinks=False)
        temporary.replace(link)
        flush_directory(link.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        os.close(fd)


def sha256_of(source: Source, checked: Callable[[], None] = lambda: None) -> str:
    """Hash all of ``source``; ``checked`` is called between blocks. Lower-case hex."""
    digest = hashlib.sha256()
    for block in source.blocks():
        checked()
        digest.update(block)
    return digest.hexdigest()


def written_size(pieces: Iterable[Piece]) -> int:
    """Sum what ``Replacement.fill`` writes of the pieces, in bytes: all but the holes."""
    return sum(piece.size for piece in pieces if not _is_hole(piece))


def _is_hole(piece: Piece) -> bool:
    return isinstance(piece, Zeros) and piece.size >= _HOLE


def _runs(pieces: Iterable[Piece]) -> Iterator[Sequence[Piece] | Zeros]:
    """Split at the zeros that are worth a hole."""
    run: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Zeros) and _is_hole(piece):
            yield run
            run = []
            yield piece
        else:
            run.append(piece)
    yield run


def _copy_attributes(source: int, target: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(source)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EINVAL):
            return
        raise
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError:
            if name not in _SET_BY_THE_SYSTEM:
                raise
