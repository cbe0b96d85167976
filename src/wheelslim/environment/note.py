"""Notes beside libraries: what is about to be replaced, until the books say it too.

A note is written, and flushed, before its library gets its new content, and removed once RECORD and
the other books are right. So a run that was killed leaves notes, and the next one, whatever
directory it starts from, finishes the books.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from wheelslim.archive.output import flush_directory
from wheelslim.archive.scratch import PREFIX
from wheelslim.archive.storage import storage_errors
from wheelslim.environment.replacement import opened, relink, sha256_of
from wheelslim.errors import StorageError
from wheelslim.rewriter import ChangedMember

SUFFIX = ".note"
_SCHEMA = "wheelslim/note/1"


def is_note(name: str) -> bool:
    """Whether a path is that of a note."""
    base = PurePosixPath(name).name
    return base.startswith(PREFIX) and base.endswith(SUFFIX)


@dataclass(frozen=True)
class Note:
    """One replaced library.

    ``path`` is the note's own file, ``library`` the library, ``links`` further names of the same
    file, ``change`` sizes and hashes before and after, ``stamp`` what ``wheelslim.json`` says of it.
    """

    path: Path
    library: Path
    links: tuple[Path, ...]
    change: ChangedMember
    stamp: dict[str, Any]

    @classmethod
    def write(
        cls, library: Path, links: tuple[Path, ...], change: ChangedMember, stamp: dict[str, Any]
    ) -> Note:
        """Write the note beside ``library`` and flush it to disk.

        Raises:
            OSError: the operating system refuses; there is no note then.
        """
        directory = library.parent
        path = directory / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}"
        text = {
            "schema": _SCHEMA,
            "library": library.name,
            "links": [os.path.relpath(link, directory) for link in links],
            "name": change.name,
            "size_before": change.size_before,
            "size_after": change.size_after,
            "sha256_before": change.sha256_before,
            "sha256_after": change.sha256_after,
            "stamp": stamp,
        }
        try:
            with path.open("xb") as file:
                file.write(json.dumps(text).encode())
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise
        flush_directory(directory)
        return cls(path, library, links, change, stamp)

    @classmethod
    def read(cls, path: Path) -> Note | None:
        """Read a note; None where it does not parse: its run was killed before it used it.

        Raises:
            StorageError: the operating system refuses.
        """
        with storage_errors(path):
            data = path.read_bytes()
        try:
            text = json.loads(data)
            change = ChangedMember(
                name=str(text["name"]),
                size_before=int(text["size_before"]),
                size_after=int(text["size_after"]),
                sha256_before=str(text["sha256_before"]),
                sha256_after=str(text["sha256_after"]),
            )
            library = str(text["library"])
            links = [str(link) for link in text["links"]]
            stamp = text["stamp"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        if text.get("schema") != _SCHEMA or "/" in library or not isinstance(stamp, dict):
            return None
        directory = path.parent
        return cls(
            path,
            directory / library,
            tuple(Path(os.path.normpath(directory / link)) for link in links),
            change,
            stamp,
        )

    def was_used(self) -> bool:
        """Whether the library has the content that the note announces; reads it whole.

        Raises:
            StorageError: the library cannot be read.
        """
        return _has(self.library, self.change.size_after, self.change.sha256_after)

    def finish_links(self, root: Path) -> None:
        """Let those further names below ``root`` that still lead to the old content lead to the new.

        Raises:
            OSError: the operating system refuses.
        """
        for link in self.links:
            inside = link.is_relative_to(root) and not link.is_symlink()
            if inside and _has(link, self.change.size_before, self.change.sha256_before):
                relink(self.library, link)

    def remove(self) -> None:
        """Remove the note; everything that it says is in the books."""
        with storage_errors(self.path):
            self.path.unlink(missing_ok=True)


def _has(path: Path, size: int, sha256: str) -> bool:
    try:
        with opened(path) as original:
            return original.status.st_size == size and sha256_of(original.source) == sha256
    except StorageError:
        if not path.exists():
            return False
        raise
