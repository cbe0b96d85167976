"""One library of a tree: planned, written beside itself, proved, noted, and given its name."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_error
from wheelslim.environment.note import Note
from wheelslim.environment.replacement import (
    beside,
    check_writable,
    opened,
    relink,
    sha256_of,
    written_size,
)
from wheelslim.errors import StorageError, WheelslimError
from wheelslim.rewriter import ChangedMember, RewriteResult
from wheelslim.slim import Method
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from wheelslim.environment.listing import Candidate
    from wheelslim.environment.owners import Owners
    from wheelslim.environment.replacement import Original, Replacement
    from wheelslim.pieces import Piece
    from wheelslim.report.model import LibraryReport
    from wheelslim.slim_rewriter import SlimRewriter

_WORTHWHILE = 4096
"""Bytes on disk, a page, that a library has to save: a new inode is not shared with anybody."""


class StoppedError(Exception):
    """The run is being stopped. Never leaves this package."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A library that has its new content.

    ``shared`` says that other names outside the tree keep the old content; ``failed`` are further
    names in the tree that do, and why.
    """

    note: Note
    shared: bool
    failed: dict[Path, WheelslimError]


@dataclass(frozen=True)
class LibrarySlimmer:
    """Slims libraries of the tree ``root``; ``is_stopped`` is asked now and then."""

    root: Path
    rewriter: SlimRewriter
    owners: Owners
    is_stopped: Callable[[], bool]

    def slim(self, candidate: Candidate) -> Replaced | None:
        """Slim one library; None where it stays as it is.

        Raises:
            WheelslimError: it cannot be replaced, or does not keep the promises; it is as it was.
            StoppedError: the run is being stopped; it is as it was.
        """
        path = self.root / candidate.name
        links = tuple(self.root / link for link in candidate.links)
        with opened(path) as original:
            pieces = self._plan(candidate, original)
            if pieces is None:
                return None
            self._check_replaceable((path, *links))
            with beside(path) as new:
                written = new.fill(pieces, original.source, self._check_going)
                self.rewriter.confirm(candidate.name, original.source, Source.of_file(new.fd))
                new.keep_metadata(original.source.fd, original.status)
                change = ChangedMember(
                    name=candidate.name,
                    size_before=original.status.st_size,
                    size_after=written.size,
                    sha256_before=sha256_of(original.source, self._check_going),
                    sha256_after=written.sha256,
                )
                return self._replace(original, new, links, change)

    def plan(self, candidate: Candidate) -> None:
        """Plan one library for the report alone.

        Raises:
            WheelslimError: it cannot be read.
        """
        with opened(self.root / candidate.name) as original:
            self._plan(candidate, original)

    def _plan(self, candidate: Candidate, original: Original) -> Sequence[Piece] | None:
        """Plan; None also where a new inode would cost more than the bytes that it saves."""
        pieces = self.rewriter.plan(candidate.name, original.source)
        if pieces is None or original.source.size - written_size(pieces) >= _WORTHWHILE:
            return pieces
        report = self.rewriter.reports.get(candidate.name)
        if report is not None:
            self.rewriter.reports[candidate.name] = _left_alone(report)
        return None

    def _check_going(self) -> None:
        if self.is_stopped():
            raise StoppedError

    def _check_replaceable(self, paths: tuple[Path, ...]) -> None:
        """Refuse before anything is written what could not be finished: files, and books about them."""
        for path in paths:
            check_writable(path.parent)
            self.owners.check_known(path)
            for owned in self.owners.of(path):
                owned.book.check_writable()

    def _replace(
        self, original: Original, new: Replacement, links: tuple[Path, ...], change: ChangedMember
    ) -> Replaced:
        stamp = json.loads(self.rewriter.stamp(RewriteResult((change,), (), 0, 0)))
        note = Note.write(original.path, links, change, stamp)
        try:
            original.check_unmoved()
            new.take_name(original.path)
        except BaseException:
            with suppress(WheelslimError):
                note.remove()
            raise
        failed: dict[Path, WheelslimError] = {}
        for link in links:
            try:
                if link.lstat().st_ino != original.status.st_ino:
                    failed[link] = StorageError("the file was changed while it was read")
                else:
                    relink(original.path, link)
            except OSError as error:
                failed[link] = storage_error(error, link)
        done = tuple(link for link in links if link not in failed)
        shared = original.status.st_nlink > 1 + len(links)
        return Replaced(replace(note, links=done), shared, failed)


def _left_alone(report: LibraryReport) -> LibraryReport:
    account = report.account
    coverage = tuple(replace(item, after=item.before, lost=0) for item in account.coverage)
    account = replace(
        account,
        size_after=account.size_before,
        method=Method.NONE,
        after=account.before,
        coverage=coverage,
        notes=(*account.notes, "left as it is: no page would be saved"),
    )
    return replace(report, account=account)
