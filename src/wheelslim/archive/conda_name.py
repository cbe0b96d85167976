"""The name of a conda package: what its index says, its file name, and the build suffix."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.json_style import read_json
from wheelslim.errors import ArchiveError, Place, UsageError

INDEX_JSON = "info/index.json"
SUFFIXES = {ArtifactKind.CONDA: ".conda", ArtifactKind.TAR_BZ2: ".tar.bz2"}

_BUILD_SUFFIX = re.compile(r"[A-Za-z0-9_]+")
"""What a build string may hold so that every client can match it (CEP 26; rattler's MatchSpec)."""

_PART = re.compile(r"[^/\\\0\s]+")


@dataclass(frozen=True)
class CondaName:
    """Name, version and build string of a package."""

    name: str
    version: str
    build: str

    @classmethod
    def parse(cls, index: bytes) -> CondaName:
        """Read them from ``info/index.json``.

        Raises:
            ArchiveError: the document does not parse or lacks one of them.
        """
        document, _ = read_json(index, INDEX_JSON)
        parts = []
        for key in ("name", "version", "build"):
            value = document.get(key) if isinstance(document, dict) else None
            if not isinstance(value, str) or _PART.fullmatch(value) is None:
                raise ArchiveError(f"there is no {key}", place=Place(member=INDEX_JSON), found=repr(value))
            parts.append(value)
        return cls(*parts)

    def with_suffix(self, suffix: str | None) -> CondaName:
        """Return the name with ``_suffix`` after the build string, unless it ends so already.

        Raises:
            UsageError: a build string cannot hold the suffix.
        """
        if suffix is None:
            return self
        word = suffix.lstrip("_")
        if _BUILD_SUFFIX.fullmatch(word) is None:
            raise UsageError(
                "a conda build string cannot hold the suffix",
                expected="letters, digits and '_'",
                found=repr(suffix),
            )
        if self.build.endswith(f"_{word}"):
            return self
        return replace(self, build=f"{self.build}_{word}")

    @property
    def stem(self) -> str:
        """The file name without its extension, which the tars in a ``.conda`` carry too."""
        return f"{self.name}-{self.version}-{self.build}"

    def file_name(self, kind: ArtifactKind) -> str:
        """Return the name that clients expect the file to have."""
        return self.stem + SUFFIXES[kind]


def index_with_build(index: bytes, build: str) -> bytes:
    """Return ``info/index.json`` with another build string.

    Raises:
        ArchiveError: the document does not parse.
    """
    document: dict[str, Any]
    document, style = read_json(index, INDEX_JSON)
    if document.get("build") == build:
        return index
    return style.write(document | {"build": build})
