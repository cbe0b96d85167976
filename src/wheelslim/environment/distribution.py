"""An installed distribution: its dist-info directory and RECORD.

Format: "Recording installed projects" of packaging.python.org (PEP 376, PEP 627).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wheelslim.archive.record import Record, RecordEntry
from wheelslim.environment.accounts import merged, parse
from wheelslim.environment.book_file import check_readable, read_book, read_if_there
from wheelslim.environment.replacement import check_writable, replace_text
from wheelslim.rewriter import ChangedMember
from wheelslim.stamp import STAMP_FILE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

RECORD = "RECORD"
DIST_INFO = ".dist-info"


@dataclass(frozen=True)
class Distribution:
    """A dist-info directory; paths in its RECORD count from the directory that holds it."""

    dist_info: Path

    @property
    def label(self) -> str:
        """Name and version as the directory spells them."""
        return self.dist_info.name.removesuffix(DIST_INFO)

    @property
    def name(self) -> str:
        """The name, normalised."""
        from packaging.utils import canonicalize_name

        return canonicalize_name(self.label.rpartition("-")[0] or self.label)

    @property
    def place(self) -> Path:
        """The file that is the book."""
        return self.dist_info / RECORD

    @property
    def base(self) -> Path:
        """Where paths count from: the site-packages directory."""
        return self.dist_info.parent

    def check_writable(self) -> None:
        """Make sure that RECORD can be replaced, and that the stamp is no odd file.

        Raises:
            ArchiveError: the stamp is no regular file.
            StorageError: they cannot be read or replaced.
        """
        check_writable(self.dist_info)
        check_readable(self.dist_info / STAMP_FILE)

    def record(self) -> Record:
        """Read RECORD.

        Raises:
            ArchiveError: it does not parse.
            StorageError: the operating system refuses.
        """
        return Record.parse(read_book(self.place), self._inside(RECORD))

    def listed(self) -> Iterable[str]:
        """Return all paths as RECORD spells them; raises as ``record`` does."""
        return self.record().entries

    def book(
        self,
        changed: Mapping[str, ChangedMember],
        dropped: Collection[str],
        stamps: Sequence[Mapping[str, Any]],
    ) -> tuple[ChangedMember, ...]:
        """Bring RECORD and ``wheelslim.json`` up to date; doing it twice is doing it once.

        ``changed`` and ``dropped`` are by path as RECORD spells it. Returns the account of the two
        files themselves, named by their paths on disk.

        Raises:
            ArchiveError: RECORD does not parse.
            StorageError: the operating system refuses.
        """
        record = self.record()
        done = []
        rows = {
            path: RecordEntry.of_sha256(path, change.sha256_after, change.size_after)
            for path, change in changed.items()
            if path in record.entries
        }
        if stamps:
            path = self.dist_info / STAMP_FILE
            old = read_if_there(path)
            stamp = (json.dumps(merged(parse(old), stamps), indent=2) + "\n").encode()
            if stamp != old:
                replace_text(path, stamp, like=self.place)
            account = _account(path, old, stamp)
            done.append(account)
            inside = self._inside(STAMP_FILE)
            rows[inside] = RecordEntry.of_sha256(inside, account.sha256_after, account.size_after)
        before = read_book(self.place)
        after = record.rewritten(rows, dropped)
        if after != before:
            replace_text(self.place, after)
        return (*done, _account(self.place, before, after))

    def _inside(self, name: str) -> str:
        return f"{self.dist_info.name}/{name}"


def _account(path: Path, before: bytes, after: bytes) -> ChangedMember:
    return ChangedMember(
        name=str(path),
        size_before=len(before),
        size_after=len(after),
        sha256_before=hashlib.sha256(before).hexdigest(),
        sha256_after=hashlib.sha256(after).hexdigest(),
    )
