"""A directory tree as an artifact: an installed environment, an unpacked package.

What cannot be read is reported in ``problems`` and passed over. Links are members of their own and
never followed, so nothing outside the tree is read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind, Member, MemberType
from wheelslim.archive.storage import storage_error, storage_errors
from wheelslim.errors import ArchiveError, Place, StorageError
from wheelslim.rewriter import HEAD_SIZE
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from types import TracebackType

READ_LIMIT = 64 << 20
_OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class TreeArtifact:
    """The files below a directory, sorted by name.

    A further name of a file that was seen before is a hard link of size 0, so that sizes add up to
    what the tree takes on disk. ``problems`` are sentences for people; reading files adds to them.
    ``unreadable`` holds, of these, what the operating system refused, by name.
    """

    kind = ArtifactKind.TREE

    def __init__(self, path: Path, passes_over: Callable[[str, Collection[str]], bool] | None = None) -> None:
        """List the tree; no file is opened.

        ``passes_over`` is asked for each directory below ``path``, with the names in it: True leaves
        it out with all that it holds.

        Raises:
            StorageError: the directory itself cannot be listed.
        """
        self.path = path
        self.problems: list[str] = []
        self.unreadable: dict[str, str] = {}
        self._passes_over = passes_over or (lambda _name, _names: False)
        self._inodes: dict[tuple[int, int], str] = {}
        with storage_errors(path):
            self._root = path.resolve()
            top = _entries(path)
        self.members = tuple(self._listed(top, ""))

    @property
    def size(self) -> int:
        """Bytes of all files, each counted once."""
        return sum(member.size for member in self.members)

    def _listed(self, entries: list[os.DirEntry[str]], prefix: str) -> Iterator[Member]:
        for entry in entries:
            name = prefix + entry.name
            try:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    below = self._below(entry, name)
                    if not self._passes_over(name, [found.name for found in below]):
                        yield Member(f"{name}/", 0, 0, MemberType.DIRECTORY, stat.S_IMODE(status.st_mode))
                        yield from self._listed(below, f"{name}/")
                else:
                    yield from self._one(entry, name, status)
            except OSError as error:
                self._passed_over(name, error)

    def _below(self, entry: os.DirEntry[str], name: str) -> list[os.DirEntry[str]]:
        try:
            return _entries(entry.path)
        except OSError as error:
            self._passed_over(name, error)
            return []

    def _one(self, entry: os.DirEntry[str], name: str, status: os.stat_result) -> Iterator[Member]:
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            path = Path(entry.path)
            target = path.readlink()
            if not path.exists():
                self.problems.append(f"{name}: the link leads nowhere (to {target})")
            yield Member(name, 0, 0, MemberType.SYMLINK, mode, target.as_posix())
        elif not stat.S_ISREG(status.st_mode):
            self.problems.append(f"{name}: passed over, neither file, directory nor link")
        else:
            if status.st_nlink > 1:
                key = (status.st_dev, status.st_ino)
                first = self._inodes.setdefault(key, name)
                if first != name:
                    yield Member(name, 0, 0, MemberType.HARDLINK, mode, first)
                    return
            yield Member(name, status.st_size, status.st_size, MemberType.FILE, mode)

    def _passed_over(self, name: str, error: OSError) -> None:
        self.unreadable[name] = storage_error(error, self.path).what
        self.problems.append(f"{name}: passed over, {self.unreadable[name]}")

    def walk(self, wants: Callable[[Member, bytes], bool]) -> Iterator[tuple[Member, Source | None]]:
        """Yield every member in order of name; see ``Artifact.walk``.

        A file that cannot be read comes without a Source, and stands in ``problems``.
        """
        for member in self.members:
            if member.type is not MemberType.FILE:
                yield member, None
                continue
            try:
                fd = os.open(self._inside(member.name), _OPEN)
            except OSError as error:
                self._passed_over(member.name, error)
                yield member, None
                continue
            try:
                source = self._source(fd, member)
                wanted = source is not None and wants(member, source.read(0, min(HEAD_SIZE, source.size)))
                yield member, source if wanted else None
            finally:
                os.close(fd)

    def _inside(self, name: str) -> Path:
        return self._root / name

    def _source(self, fd: int, member: Member) -> Source | None:
        """Cover an open file; None, and a problem, where even its first byte cannot be read."""
        try:
            source = Source.of_file(fd)
            if source.size:
                source.read(0, 1)
        except OSError as error:
            self._passed_over(member.name, error)
            return None
        return source

    def read(self, name: str) -> bytes:
        """Return a small file whole (at most 64 MiB).

        Raises:
            ArchiveError: no such file in the tree, or it is larger.
            StorageError: the operating system refuses.
        """
        member = next((m for m in self.members if m.name == name and m.type is MemberType.FILE), None)
        place = Place(artifact=str(self.path), member=name)
        if member is None:
            raise ArchiveError("the tree has no such file", place=place)
        if member.size > READ_LIMIT:
            raise ArchiveError("the file is too large to be metadata", place=place)
        try:
            return self._inside(name).read_bytes()
        except OSError as error:
            raise StorageError(storage_error(error, self.path).what, place=place) from error

    def close(self) -> None:
        """Nothing stays open between members."""

    def __enter__(self) -> TreeArtifact:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing stays open between members."""


def _entries(path: str | Path) -> list[os.DirEntry[str]]:
    """List a directory by name; a call that a signal interrupts is made again, as Python does for files."""
    while True:
        try:
            with os.scandir(path) as found:
                return sorted(found, key=lambda entry: entry.name)
        except InterruptedError:
            continue
