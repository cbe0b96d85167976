"""``wheelslim.json``: what a slimmed artifact says of itself (docs/json.md)."""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass

from wheelslim.errors import ArchiveError, Place

STAMP_FILE = "wheelslim.json"
_SCHEMA_PREFIX = "wheelslim/stamp/"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The part of a stamp that other commands read; ``member`` is its path in the artifact."""

    member: str
    targets: tuple[str, ...]
    ptx: str = "auto"
    exact: bool = False
    dropped: tuple[str, ...] = ()

    @property
    def dropped_members(self) -> tuple[str, ...]:
        """What was left out, as paths of the artifact: the stamp's own count from its distribution's root."""
        root = posixpath.dirname(posixpath.dirname(self.member))
        return tuple(posixpath.join(root, name) for name in self.dropped)


def is_stamp(name: str) -> bool:
    """Whether a member is a stamp: in a dist-info directory, or in ``info/`` of a conda package."""
    directory, _, file = name.rpartition("/")
    return file == STAMP_FILE and (directory == "info" or directory.endswith(".dist-info"))


def read_stamp(member: str, data: bytes) -> Stamp:
    """Read a stamp.

    Raises:
        ArchiveError: it is no JSON object of that form.
    """
    try:
        value = json.loads(data)
        if not str(value["schema"]).startswith(_SCHEMA_PREFIX):
            raise ValueError(value["schema"])
        return Stamp(
            member,
            tuple(str(word) for word in value["targets"]),
            str(value.get("ptx", "auto")),
            bool(value.get("exact", False)),
            tuple(str(name) for name in value.get("dropped_members", ())),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveError(
            "the file does not say what wheelslim did",
            place=Place(member=member),
            expected="a stamp of wheelslim",
            found=f"{type(error).__name__}: {error}",
        ) from error
