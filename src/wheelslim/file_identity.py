"""What tells a file from another one, or from itself after a write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_errors
from wheelslim.errors import Place, StorageError

if TYPE_CHECKING:
    import os
    from pathlib import Path


@dataclass(frozen=True)
class FileIdentity:
    """Device, inode, size in bytes and time of the last write in nanoseconds."""

    device: int
    inode: int
    size: int
    written: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileIdentity:
        """Take it from what ``stat`` said."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def check(self, path: Path, *, follow: bool = True) -> None:
        """Make sure that ``path`` still leads to the file as it was; ``follow`` symbolic links.

        Raises:
            StorageError: somebody replaced it or wrote to it, or the operating system refuses.
        """
        with storage_errors(path):
            now = FileIdentity.of(path.stat(follow_symlinks=follow))
        if now != self:
            raise StorageError(
                "the file was changed while it was read",
                place=Place(artifact=str(path)),
                hint="Run again when nothing else writes to it",
            )
