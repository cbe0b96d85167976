"""The one view that every command has of a wheel, a conda package, a tree or a single file."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from wheelslim.source import Source


class ArtifactKind(Enum):
    """What an artifact is, as the reports name it."""

    WHEEL = "wheel"
    CONDA = "conda"
    TAR_BZ2 = "tar.bz2"
    TREE = "tree"
    FILE = "file"


class MemberType(Enum):
    """The kinds of member that an artifact can hold."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"


class Member(NamedTuple):
    """One name in an artifact.

    ``name`` is the POSIX path inside the artifact, ``size`` the uncompressed bytes, ``stored`` the
    bytes it takes in the artifact's file (0 where members share one stream), ``mode`` the
    permission bits or None where the artifact does not say, ``link_target`` what a link names.
    ``facts`` is what else an archive stores about the member (dates, owners), only to be compared
    within one kind of archive.
    """

    name: str
    size: int
    stored: int = 0
    type: MemberType = MemberType.FILE
    mode: int | None = None
    link_target: str | None = None
    facts: tuple[object, ...] = ()


class Artifact(Protocol):
    """An artifact opened for reading; a context manager that closes what it opened."""

    @property
    def path(self) -> Path:
        """Where it lies."""
        ...

    @property
    def kind(self) -> ArtifactKind:
        """What it is."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the artifact's own file, or of all files of a tree."""
        ...

    def walk(self, wants: Callable[[Member, bytes], bool]) -> Iterator[tuple[Member, Source | None]]:
        """Yield every member in stored order.

        Regular files for which ``wants(member, head)`` is true (``head``: the first
        ``rewriter.HEAD_SIZE`` bytes) come with a Source, which is valid only until the next step.

        Raises:
            ArchiveError: the archive does not parse, or a member does not inflate to its own size
                and CRC.
        """
        ...

    def read(self, name: str) -> bytes:
        """Return a small member whole (metadata; at most 64 MiB).

        Raises:
            ArchiveError: no such member, or it is larger.
        """
        ...


def check_stamp_place(stamp: str, members: Iterable[tuple[str, MemberType]]) -> None:
    """Make sure that a file can stand at ``stamp``: ``members`` are names and types.

    Raises:
        ArchiveError: a directory or a link stands there.
    """
    for name, kind in members:
        if name.startswith(f"{stamp}/") or (name == stamp and kind is not MemberType.FILE):
            raise ArchiveError(
                "wheelslim's own file cannot be written: its name is taken",
                place=Place(member=name),
                expected="a file, or nothing",
                found="a link" if name == stamp else "a directory",
                hint="Pack the package again without it",
            )
