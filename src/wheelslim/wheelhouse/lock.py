"""``wheelhouse.json``: which wheels a wheelhouse holds, from which sources, for which targets."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelslim.archive.output import atomic_output
from wheelslim.archive.storage import storage_errors
from wheelslim.errors import ArchiveError, Place
from wheelslim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LOCK = "wheelhouse.json"
_SCHEMA = "wheelslim/wheelhouse/1"


@dataclass(frozen=True, slots=True)
class LockedWheel:
    """A wheel of the wheelhouse: file name, size in bytes, SHA-256 of the result and of its source.

    A wheel without device code is its own source.
    """

    name: str
    version: str
    file: str
    size: int
    sha256: str
    source_file: str
    source_sha256: str


@dataclass(frozen=True)
class Lock:
    """All wheels, and what was asked of them (targets and options, as JSON values)."""

    request: Mapping[str, Any]
    wheels: tuple[LockedWheel, ...] = ()
    by_source: Mapping[str, LockedWheel] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, request: Mapping[str, Any], wheels: Iterable[LockedWheel]) -> Lock:
        """Put the wheels in order of name and version."""
        ordered = tuple(sorted(wheels, key=lambda wheel: (wheel.name, wheel.version, wheel.file)))
        return cls(request, ordered, {wheel.source_sha256: wheel for wheel in ordered})

    @classmethod
    def read(cls, directory: Path) -> Lock | None:
        """Read the lock of a wheelhouse; None where there is none.

        Raises:
            ArchiveError: it does not parse.
            StorageError: the operating system refuses.
        """
        path = directory / LOCK
        if not path.exists():
            return None
        with storage_errors(path):
            data = path.read_bytes()
        try:
            document = json.loads(data)
            if document["schema"] != _SCHEMA:
                raise ValueError(document["schema"])
            wheels = [LockedWheel(**wheel) for wheel in document["wheels"]]
            if any(Path(wheel.file).name != wheel.file for wheel in wheels):
                raise ValueError("a file outside the wheelhouse")
            return cls.of(document["request"], wheels)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ArchiveError(
                "the lock of the wheelhouse does not parse",
                place=Place(artifact=str(path)),
                found=f"{type(error).__name__}: {error}",
                hint="Remove it: the wheels are slimmed again",
            ) from error

    def write(self, directory: Path) -> None:
        """Write the lock in one step.

        Raises:
            StorageError: the operating system refuses.
        """
        document = {
            "schema": _SCHEMA,
            "wheelslim": VERSION,
            "request": self.request,
            "wheels": [asdict(wheel) for wheel in self.wheels],
        }
        write_text(directory / LOCK, json.dumps(document, indent=2) + "\n")

    def requirements(self) -> str:
        """Return ``requirements.slim.txt``: exact versions with the hashes of the slimmed wheels."""
        targets = ", ".join(self.request["targets"])
        lines = [
            f"# Slimmed by wheelslim {VERSION} for {targets}. Install with pip --require-hashes, or with uv,",
            "# from the directory of this file (--find-links) or its index (simple/).",
        ]
        for wheel in self.wheels:
            if wheel.sha256 != wheel.source_sha256:
                lines.append(f"# from {wheel.source_file} sha256:{wheel.source_sha256}")
            lines += [f"{wheel.name}=={wheel.version} \\", f"    --hash=sha256:{wheel.sha256}"]
        return "\n".join(lines) + "\n"


def write_text(path: Path, text: str) -> None:
    """Give ``path`` a new content in one step.

    Raises:
        StorageError: the operating system refuses.
    """
    with atomic_output(path, force=True) as temporary, storage_errors(path):
        temporary.write_text(text, encoding="utf-8", newline="\n")
