"""The content of members of two artifacts, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.raw_members import same_raw_members
from wheelslim.archive.wheel import WheelArtifact
from wheelslim.errors import ArchiveError, Place, VerifyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.archive.opener import AnyArtifact
    from wheelslim.proof.listing import Listing
    from wheelslim.source import Source


def paired_sources(
    before: AnyArtifact, after: AnyArtifact, names: frozenset[str], listing: Listing
) -> Iterator[tuple[str, tuple[Source, Source] | None]]:
    """Yield the content of each of ``names`` from both sides; valid until the next step.

    None stands for members that are known to be the same without being unpacked. Both artifacts are
    read once, in step, unless their orders differ.

    Raises:
        VerifyError: the slimmed one does not unpack.
    """
    same: frozenset[str] = frozenset()
    if isinstance(before, WheelArtifact) and isinstance(after, WheelArtifact):
        same = same_raw_members(before, after) & names
    for name in same:
        yield name, None
    left = names - same
    if before.kind is ArtifactKind.FILE:
        left_after = frozenset(member.name for member in listing.after.values())
    else:
        left_after = left
    order = [name for name in listing.before if name in left]
    if order == [name for name in listing.after if name in left]:
        olds, news = _sources(before, left), _slimmed(after, left_after)
        for (name, old), (_, new) in zip(olds, news, strict=True):
            yield name, (old, new)
        return
    for name, old in _sources(before, left):
        for _, new in _slimmed(after, frozenset({name})):
            yield name, (old, new)


def _sources(artifact: AnyArtifact, names: frozenset[str]) -> Iterator[tuple[str, Source]]:
    for member, source in artifact.walk(lambda member, _: member.name in names):
        if source is not None:
            yield member.name, source
        elif member.name in names:
            raise ArchiveError("the member cannot be read", place=Place(member=member.name))


def _slimmed(artifact: AnyArtifact, names: frozenset[str]) -> Iterator[tuple[str, Source]]:
    try:
        yield from _sources(artifact, names)
    except ArchiveError as error:
        raise VerifyError(
            error.what, place=error.place, expected=error.expected, found=error.found
        ) from error
