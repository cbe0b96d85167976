"""A single file as an artifact with one member."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind, Member
from wheelslim.archive.storage import storage_errors
from wheelslim.errors import ArchiveError, Place
from wheelslim.rewriter import HEAD_SIZE
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

READ_LIMIT = 64 << 20


class FileArtifact:
    """A library, a fatbin, a cubin: any single file. Its member is called by the file's name."""

    kind = ArtifactKind.FILE

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            StorageError: the operating system refuses.
        """
        self.path = path
        with storage_errors(path):
            self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            status = os.fstat(self._fd)
        self.size = status.st_size
        self._member = Member(path.name, status.st_size, status.st_size, mode=stat.S_IMODE(status.st_mode))

    def walk(self, wants: Callable[[Member, bytes], bool]) -> Iterator[tuple[Member, Source | None]]:
        """Yield the one member; see ``Artifact.walk``."""
        with storage_errors(self.path):
            source = Source.of_file(self._fd)
            head = source.read(0, min(HEAD_SIZE, source.size))
        yield self._member, source if wants(self._member, head) else None

    def read(self, name: str) -> bytes:
        """Return the file whole, if it is at most 64 MiB.

        Raises:
            ArchiveError: it has another name, or is larger.
        """
        if name != self._member.name or self.size > READ_LIMIT:
            place = Place(artifact=str(self.path), member=name)
            raise ArchiveError("no such member, or it is too large", place=place)
        with storage_errors(self.path):
            return Source.of_file(self._fd).read(0, self.size)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> FileArtifact:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()
