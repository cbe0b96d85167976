"""The members of two artifacts by name, order and attributes; no content is read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind, MemberType
from wheelslim.errors import Place, VerifyError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from wheelslim.archive.artifact import Member
    from wheelslim.archive.opener import AnyArtifact

_PACKED = frozenset({ArtifactKind.WHEEL, ArtifactKind.CONDA, ArtifactKind.TAR_BZ2})
_CONDA = frozenset({ArtifactKind.CONDA, ArtifactKind.TAR_BZ2})
_SIGNATURES = (".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")


@dataclass(frozen=True)
class Listing:
    """Both lists in stored order.

    A single file goes by one name on both sides, whatever the two are called.
    """

    before: dict[str, Member]
    after: dict[str, Member]
    kinds: tuple[ArtifactKind, ArtifactKind]
    identities: tuple[str, str]

    @classmethod
    def of(cls, before: AnyArtifact, after: AnyArtifact) -> Listing:
        """List both artifacts."""
        old, new = _members(before), _members(after)
        if before.kind is after.kind is ArtifactKind.FILE:
            new = dict(zip(old, new.values(), strict=True))
        return cls(old, new, (before.kind, after.kind), (_identity(before), _identity(after)))

    @property
    def common(self) -> tuple[str, ...]:
        """The names that both hold, in the original's order."""
        return tuple(name for name in self.before if name in self.after)

    def check_related(self) -> None:
        """Check that one can be the slimmed copy of the other.

        Raises:
            VerifyError: they are unrelated.
        """
        old, new = self.kinds
        if old is not new and not {old, new} <= _CONDA:
            raise _unrelated(f"a {old.value}", f"a {new.value}")
        if self.identities[0] != self.identities[1]:
            raise _unrelated(*self.identities)
        files = [name for name in self.common if self.before[name].type is MemberType.FILE]
        if not files and self.before:
            raise _unrelated(f"a member such as {next(iter(self.before))}", "no member of the original")

    def strays(self, dropped: Collection[str], added: Collection[str]) -> Iterator[VerifyError]:
        """Yield members that are gone without a word, left in spite of it, or new."""
        emptied = {f"{parent}/" for name in dropped for parent in map(str, PurePosixPath(name).parents)}
        for name in self.before:
            if name in self.after or name in dropped or name.endswith(_SIGNATURES):
                continue
            if name not in emptied or self.before[name].type is not MemberType.DIRECTORY:
                yield VerifyError("the member is gone", place=Place(member=name))
        for name in self.after:
            if name in dropped:
                yield VerifyError("the member should have been dropped", place=Place(member=name))
            elif name not in self.before and name not in added:
                yield VerifyError("the member is new", place=Place(member=name))

    def misplaced(self) -> Iterator[VerifyError]:
        """Yield the first member that stands in another place."""
        after = [name for name in self.after if name in self.before]
        before: tuple[str, ...] | list[str] = self.common
        if set(self.kinds) == _CONDA:  # The two formats store info/ and the rest in another order.
            before, after = sorted(before), sorted(after)
        for expected, found in zip_longest(before, after):
            if expected != found:
                yield VerifyError(
                    "the members are in another order",
                    place=Place(member=found),
                    expected=str(expected),
                    found=str(found),
                )
                return

    def other_attributes(self, replaced: Collection[str]) -> Iterator[VerifyError]:
        """Yield differences in type, mode, link target and date; not of the ``replaced`` members."""
        packed = set(self.kinds) <= _PACKED
        for name in self.common:
            old, new = self.before[name], self.after[name]
            if name in replaced:
                continue
            pairs: list[tuple[str, object, object]] = [
                ("type", old.type.value, new.type.value),
                ("mode", _mode(old), _mode(new)),
                ("link target", old.link_target, new.link_target),
            ]
            if packed:
                pairs.append(("date or other attributes", old.facts, new.facts))
            for what, expected, found in pairs:
                if expected != found:
                    yield VerifyError(
                        f"the {what} differs",
                        place=Place(member=name),
                        expected=str(expected),
                        found=str(found),
                    )


def _members(artifact: AnyArtifact) -> dict[str, Member]:
    return {member.name: member for member, _ in artifact.walk(lambda *_: False)}


def _identity(artifact: AnyArtifact) -> str:
    """Return what a package calls itself: name and version."""
    if artifact.kind is ArtifactKind.WHEEL:
        return f"{artifact.name.distribution} {artifact.name.version}"  # type: ignore[union-attr]
    if artifact.kind in _CONDA:
        return f"{artifact.name.name} {artifact.name.version}"  # type: ignore[union-attr]
    return ""


def _mode(member: Member) -> str:
    return "none" if member.mode is None else f"{member.mode:04o}"


def _unrelated(expected: str, found: str) -> VerifyError:
    return VerifyError("the two are unrelated", expected=expected, found=found)
