"""``wheelslim.json``: what a slimmed artifact says of itself (docs/json.md)."""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from collections.abc import Mapping

STAMP_FILE = "wheelslim.json"
_SCHEMA_PREFIX = "wheelslim/stamp/"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The part of a stamp that other commands read; ``member`` is its path in the artifact.

    ``strip``, ``embedded``, ``stored_anew`` and ``emptied`` (offsets of containers by library) are
    what a proof allows beyond the driver's rule (``proof.declared``).
    """

    member: str
    targets: tuple[str, ...]
    ptx: str = "auto"
    exact: bool = False
    dropped: tuple[str, ...] = ()
    strip: str = "none"
    embedded: bool = False
    stored_anew: bool = False
    emptied: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def dropped_members(self) -> tuple[str, ...]:
        """What was left out, as paths of the artifact: the stamp's own count from its distribution's root."""
        return tuple(posixpath.join(self._root, name) for name in self.dropped)

    def emptied_containers(self, member: str) -> frozenset[int]:
        """File offsets of the containers that were emptied in one library, a path of the artifact."""
        name = posixpath.relpath(member, self._root) if self._root else member
        return self.emptied.get(name, frozenset())

    @property
    def _root(self) -> str:
        return posixpath.dirname(posixpath.dirname(self.member))


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
            str(value.get("strip", "none")),
            bool(value.get("embedded", False)),
            bool(value.get("stored_anew", False)),
            {
                str(name): frozenset(int(offset) for offset in library.get("emptied_containers", ()))
                for name, library in value.get("libraries", {}).items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArchiveError(
            "the file does not say what wheelslim did",
            place=Place(member=member),
            expected="a stamp of wheelslim",
            found=f"{type(error).__name__}: {error}",
        ) from error
