"""Lists of checksums that packages carry beside their files (``sha256sum`` lines)."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_LINE = re.compile(r"[0-9a-f]{32,128} [ *](?P<name>.+?)\r?\n?", re.DOTALL)
_NAMES = frozenset(("checksums.txt", "sha256sums", "sha256sums.txt", "sha256sum.txt", "checksum.txt"))


def is_checksum_list(name: str) -> bool:
    """Whether a member with this name is taken for a list of checksums."""
    return name.rpartition("/")[2].lower() in _NAMES


def without(text: str, list_name: str, dropped: Collection[str]) -> str | None:
    """Return the list without lines for ``dropped`` members, or None where it names none of them.

    ``list_name`` is the member that holds the list; names in it count from its directory. Lines of
    another form stay.
    """
    directory = posixpath.dirname(list_name)
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if _path(line, directory) not in dropped]
    return None if len(kept) == len(lines) else "".join(kept)


def names_dropped(text: str, list_name: str, dropped: Collection[str]) -> int:
    """Count the lines of a list that name ``dropped`` members."""
    directory = posixpath.dirname(list_name)
    return sum(_path(line, directory) in dropped for line in text.splitlines(keepends=True))


def _path(line: str, directory: str) -> str | None:
    found = _LINE.fullmatch(line)
    return posixpath.normpath(posixpath.join(directory, found["name"])) if found else None
