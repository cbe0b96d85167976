"""The errors that wheelslim raises, each with its exit code and the place it speaks of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line (docs/cli.md)."""

    DONE = 0
    CHECK_FAILED = 1
    USAGE = 2
    UNSUPPORTED = 3
    TARGET_NEVER_SUPPORTED = 4
    IO = 5


@dataclass(frozen=True)
class Place:
    """Where a fault lies, from the outside in.

    ``offset`` is bytes: from the start of ``section`` where one is named, else from the start of
    ``member`` or of the artifact.
    """

    artifact: str | None = None
    member: str | None = None
    section: str | None = None
    offset: int | None = None

    def within(self, outer: Place) -> Place:
        """Fill what this place leaves open from ``outer``."""
        return Place(
            artifact=self.artifact if self.artifact is not None else outer.artifact,
            member=self.member if self.member is not None else outer.member,
            section=self.section if self.section is not None else outer.section,
            offset=self.offset if self.offset is not None else outer.offset,
        )

    def __str__(self) -> str:
        """Name the parts that are known, comma-separated."""
        parts = []
        if self.artifact is not None:
            parts.append(self.artifact)
        if self.member is not None:
            parts.append(f"member {self.member}")
        if self.section is not None:
            parts.append(f"section {self.section}")
        if self.offset is not None:
            parts.append(f"offset {self.offset:#x}")
        return ", ".join(parts)


class WheelslimError(Exception):
    """Root of every error that wheelslim raises on purpose.

    ``what`` says in one sentence what is wrong, ``expected`` and ``found`` make it concrete, and
    ``hint`` says what to do about it, in one line or several.
    """

    exit_code = ExitCode.UNSUPPORTED

    def __init__(
        self,
        what: str,
        *,
        place: Place | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Keep the parts; ``str()`` joins them into the one message that people see."""
        super().__init__(what)
        self.what = what
        self.place = place or Place()
        self.expected = expected
        self.found = found
        self.hint = hint

    def at(self, **outer: str | int | None) -> WheelslimError:
        """Add the outer place (``artifact=``, ``member=``, …) that a caller knows; returns self."""
        self.place = self.place.within(replace(Place(), **outer))  # type: ignore[arg-type]
        return self

    @property
    def message(self) -> str:
        """What is wrong: place, fault, expected against found."""
        where = str(self.place)
        text = f"{where}: {self.what}" if where else self.what
        if self.expected is not None and self.found is not None:
            text += f" (expected {self.expected}, found {self.found})"
        elif self.expected is not None:
            text += f" (expected {self.expected})"
        elif self.found is not None:
            text += f" (found {self.found})"
        return text

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, line by line."""
        return tuple((self.hint or "").splitlines())

    def __str__(self) -> str:
        """All of it in one line."""
        return ". ".join((self.message, *self.advice))


class UsageError(WheelslimError):
    """The words of the command line, or of an API call, do not make sense."""

    exit_code = ExitCode.USAGE


class TargetError(UsageError):
    """A target that the grammar does not know (docs/cli.md, "Targets")."""


class ArtifactError(WheelslimError):
    """The artifact is broken or of a kind that wheelslim does not support."""


class ArchiveError(ArtifactError):
    """A zip, tar or RECORD that does not parse or does not keep its own promises."""


class ElfFormatError(ArtifactError):
    """An ELF file whose headers do not hold."""


class FatbinFormatError(ArtifactError):
    """Bytes that are not the fatbin container they claim to be."""


class TargetNeverSupportedError(WheelslimError):
    """No device code in the whole artifact ever ran on a requested target."""

    exit_code = ExitCode.TARGET_NEVER_SUPPORTED


class VerifyError(WheelslimError):
    """A promise does not hold between an original and its slimmed copy."""

    exit_code = ExitCode.CHECK_FAILED


class StorageError(WheelslimError):
    """The operating system refused: no space, no permission, an I/O error."""

    exit_code = ExitCode.IO
