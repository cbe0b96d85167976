"""What an archive layer asks of the rest while it copies an artifact member by member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.pieces import Piece
    from wheelslim.source import Source

HEAD_SIZE = 64
"""How many first bytes of a member a rewriter sees before it decides."""


@dataclass(frozen=True)
class ChangedMember:
    """A member whose bytes changed: sizes in bytes, SHA-256 as lower-case hex.

    ``read_back_at`` is the offset in the written artifact of the bytes that were read back and have this
    size and hash; None where they were not.
    """

    name: str
    size_before: int
    size_after: int
    sha256_before: str
    sha256_after: str
    read_back_at: int | None = None


@dataclass(frozen=True)
class RewriteResult:
    """What one run over an artifact did.

    ``installed_before`` and ``installed_after`` are the sums of the members' uncompressed sizes;
    ``notices`` are sentences for people (a dropped RECORD signature, an odd member kept).
    """

    changed: tuple[ChangedMember, ...]
    dropped: tuple[str, ...]
    installed_before: int
    installed_after: int
    notices: tuple[str, ...] = ()


class Rewriter(Protocol):
    """Decides what becomes of each member.

    The archive layer calls ``drops`` and ``wants`` for every regular file; for those wanted it makes
    a random-access Source and calls ``plan``, unless ``telling_part`` and ``stays`` show that it need
    not; for those with a plan it calls ``confirm`` with the new
    content, writes it, and reads it back from the written artifact to see that it is there. Calls may
    come from several threads, at most one at a time for one member.
    """

    def drops(self, name: str) -> bool:
        """Whether the member is left out of the result."""
        ...

    def wants(self, name: str, size: int, head: bytes) -> bool:
        """Whether ``plan`` should see the member; ``head`` is its first ``HEAD_SIZE`` bytes."""
        ...

    def telling_part(self, name: str, size: int, head: bytes) -> tuple[int, int] | None:
        """Return offset and size of the bytes from which ``stays`` may tell; None where there are none."""
        ...

    def stays(self, name: str, size: int, head: bytes, part: bytes) -> bool:
        """Whether ``part``, the telling part of a wanted member, says that the member stays as it is."""
        ...

    def plan(self, name: str, source: Source) -> Sequence[Piece] | None:
        """Return the member's new content, or None to carry it through unchanged."""
        ...

    def confirm(self, name: str, original: Source, written: Source) -> None:
        """Raise VerifyError unless ``written``, the new content, keeps every promise."""
        ...

    def stamp(self, result: RewriteResult) -> bytes:
        """Return the content of ``wheelslim.json`` for the finished run."""
        ...
