"""Original and slimmed artifact side by side: every promise of the manual, proved or refuted.

Nothing is taken from what ``prune`` says of its work, but the targets and the names of dropped members:
an artifact that another tool made is judged in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheelslim.archive.opener import open_artifact
from wheelslim.devices import devices_of
from wheelslim.errors import TargetError, UsageError, WheelslimError
from wheelslim.proof.artifact import ArtifactProof
from wheelslim.stamp import Stamp, is_stamp, read_stamp

if TYPE_CHECKING:
    from os import PathLike

    from wheelslim.archive.opener import AnyArtifact
    from wheelslim.devices import TargetsGiven
    from wheelslim.errors import VerifyError
    from wheelslim.proof.promise import Finding
    from wheelslim.targets import Target


@dataclass(frozen=True)
class Verification:
    """What was found of every promise between two artifacts.

    ``from_stamp`` says that the targets were read from ``wheelslim.json``; ``notices`` are sentences
    for people.
    """

    original: str
    slimmed: str
    targets: tuple[str, ...]
    from_stamp: bool
    findings: tuple[Finding, ...]
    notices: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every promise holds."""
        return self.failure is None

    @property
    def failure(self) -> VerifyError | None:
        """The first failure."""
        return next((finding.failure for finding in self.findings if finding.failure is not None), None)


def verify(
    original: str | PathLike[str], slimmed: str | PathLike[str], targets: TargetsGiven | None = None
) -> Verification:
    """Prove the promises on an original and its slimmed copy; a broken promise is part of the result.

    Without ``targets`` they are read from the ``wheelslim.json`` of the slimmed one.

    Raises:
        UsageError: no targets are given, and the slimmed one does not say them.
        VerifyError: the two are unrelated.
        WheelslimError: one of them cannot be read.
    """
    original, slimmed = Path(original), Path(slimmed)
    with _opened(original) as before, _opened(slimmed) as after:
        stamps = _stamps(after)
        devices, notices = _devices(targets, stamps, str(slimmed))
        capabilities = [device.capability for device in devices if device.capability is not None]
        try:
            proof = ArtifactProof(before, after, capabilities, stamps)
            findings = proof.run()
        except WheelslimError as error:
            raise error.at(artifact=str(slimmed)) from error.__cause__
        return Verification(
            original=str(original),
            slimmed=str(slimmed),
            targets=tuple(device.name for device in devices),
            from_stamp=targets is None,
            findings=findings,
            notices=(*notices, *proof.notices),
        )


def _opened(path: Path) -> AnyArtifact:
    try:
        return open_artifact(path)
    except WheelslimError as error:
        raise error.at(artifact=str(path)) from error.__cause__


def _stamps(artifact: AnyArtifact) -> tuple[Stamp, ...]:
    names = [member.name for member, _ in artifact.walk(lambda *_: False) if is_stamp(member.name)]
    return tuple(read_stamp(name, artifact.read(name)) for name in names)


def _devices(
    given: TargetsGiven | None, stamps: tuple[Stamp, ...], slimmed: str
) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    if given is not None:
        return devices_of(given), ()
    told = {stamp.targets for stamp in stamps}
    if len(told) != 1:
        found = "none" if not told else f"{len(told)} that name different targets"
        raise UsageError(
            f"the targets are not known: {slimmed} does not say for which it was slimmed",
            expected="one wheelslim.json",
            found=found,
            hint="Name them with --arch",
        )
    if any(stamp.exact for stamp in stamps):
        notice = (
            "slimmed with --exact, a filter by name: only what was kept is compared, not what targets lost"
        )
        return (), (notice,)
    try:
        return devices_of(next(iter(told))), ()
    except TargetError as error:
        raise UsageError(
            "wheelslim.json names a target that this version does not know", found=error.message
        ) from error
