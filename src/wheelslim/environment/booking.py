"""RECORD, ``wheelslim.json`` and ``conda-meta`` brought up to date after libraries were replaced."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from wheelslim.environment.accounts import renamed
from wheelslim.environment.conda_package import CondaPackage
from wheelslim.environment.distribution import RECORD, Distribution
from wheelslim.environment.owners import find_owners
from wheelslim.errors import StorageError, WheelslimError
from wheelslim.stamp import STAMP_FILE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from wheelslim.environment.note import Note
    from wheelslim.environment.owners import Book, Owned, Owners
    from wheelslim.rewriter import ChangedMember


@dataclass(frozen=True)
class Dropped:
    """Files that are about to be removed, and the stamp of a run that removes some."""

    paths: Collection[Path] = ()
    stamp: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Entries:
    """What one book has to say: by path as the book spells it, and the stamps of the accounts."""

    changed: dict[str, ChangedMember] = field(default_factory=dict)
    added: dict[str, ChangedMember] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    stamps: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Booked:
    """What was booked: labels of packages, how many bytes the books grew, and what went wrong.

    ``kept`` are the files that were to be removed and are still listed, with what went wrong.
    """

    packages: tuple[str, ...] = ()
    growth: int = 0
    failed: Mapping[Path, WheelslimError] = field(default_factory=dict)
    kept: Mapping[Path, WheelslimError] = field(default_factory=dict)


class _Run:
    """One call of ``enter_changes``: what its steps share."""

    def __init__(self, books: Sequence[Book], owners: Owners) -> None:
        self.books = books
        self.owners = owners
        self.entries: dict[Book, _Entries] = defaultdict(_Entries)
        self.failed: dict[Path, WheelslimError] = {}
        self.growth = 0

    def collect_note(self, note: Note) -> None:
        """Enter what a note says under the names of all books that list its library."""
        for path in (note.library, *note.links):
            try:
                self.owners.check_known(path)
            except WheelslimError as error:
                self.failed[note.path] = error
                return
            for owned in self.owners.of(path):
                entry = self.entries[owned.book]
                entry.changed[owned.path] = replace(note.change, name=owned.path)
                entry.stamps.append(renamed(note.stamp, note.change.name, owned.path))

    def collect_dropped(self, dropped: Dropped) -> None:
        """Take the paths out of all books that list them."""
        for path in dropped.paths:
            for owned in self.owners.of(path):
                self.entries[owned.book].dropped.append(owned.path)
        # One inside another may have lost the rows to an earlier run, which was killed before it
        # told the one around: its RECORD is booked again.
        distributions = [book for book in self.books if isinstance(book, Distribution)]
        for book in distributions:
            if not _outer_rows(book, distributions):
                continue
            if any(path.is_relative_to(book.base) for path in dropped.paths):
                self.entries.setdefault(book, _Entries())
        for entry in self.entries.values():
            if entry.dropped:
                entry.stamps.append({**dropped.stamp, "dropped_members": entry.dropped})

    def write_distributions(self) -> None:
        """Write RECORD and the stamps, and tell the conda packages that own these files."""
        accounts: dict[Path, ChangedMember] = {}
        distributions = [book for book in self.books if isinstance(book, Distribution)]
        for book in sorted(distributions, key=lambda one: -len(one.base.parts)):
            if book not in self.entries:
                continue
            entry, outer = self.entries[book], _outer_rows(book, distributions)
            try:
                # One inside another gets no stamp: the outer RECORD would have to list it.
                done = book.book(entry.changed, entry.dropped, [] if outer else entry.stamps)
            except WheelslimError as error:
                self.failed[book.place] = error
                continue
            accounts.update((Path(account.name), account) for account in done)
            for owned in outer:
                self.entries[owned.book].changed[owned.path] = done[-1]
            self.growth += sum(account.size_after - account.size_before for account in done)
        conda = [book for book in self.books if isinstance(book, CondaPackage)]
        owners = find_owners(conda, accounts)
        unread = {book.place: e for book, e in owners.broken.items() if isinstance(e, StorageError)}
        self.failed.update(unread)
        for path, account in accounts.items():
            for owned in owners.of(path):
                self.entries[owned.book].changed[owned.path] = account
            if path.name == STAMP_FILE and not owners.of(path):
                for owned in owners.of(path.with_name(RECORD)):
                    beside = str(PurePosixPath(owned.path).with_name(STAMP_FILE))
                    self.entries[owned.book].added[beside] = account

    def write_conda(self) -> None:
        """Write the records of conda packages; last, since they list RECORD."""
        for book, entry in self.entries.items():
            if isinstance(book, CondaPackage):
                try:
                    book.book(entry.changed, entry.added, entry.dropped)
                except WheelslimError as error:
                    self.failed[book.place] = error

    def still_listed(self, paths: Iterable[Path]) -> dict[Path, WheelslimError]:
        """Return those of ``paths`` that a book lists, or may list, which could not be written."""
        kept: dict[Path, WheelslimError] = {}
        for path in paths:
            try:
                self.owners.check_known(path)
            except WheelslimError as error:
                kept[path] = error
            for owned in self.owners.of(path):
                if owned.book.place in self.failed:
                    kept[path] = self.failed[owned.book.place]
        return kept

    def remove_note(self, note: Note) -> None:
        """Remove a note if all books say what it says."""
        places = {owned.book.place for path in (note.library, *note.links) for owned in self.owners.of(path)}
        if note.path in self.failed or places & self.failed.keys():
            return
        try:
            note.remove()
        except WheelslimError as error:
            self.failed[note.path] = error


def _outer_rows(book: Distribution, distributions: Sequence[Distribution]) -> tuple[Owned, ...]:
    """Return the rows that distributions around ``book`` have for its RECORD.

    ``setuptools/_vendor`` holds distributions that are files to setuptools.
    """
    above = [one for one in distributions if one.base in book.base.parents]
    return find_owners(above, [book.place]).of(book.place) if above else ()


def enter_changes(books: Sequence[Book], notes: Iterable[Note], dropped: Dropped | None = None) -> Booked:
    """Bring every book up to date that lists a library of ``notes`` or a file of ``dropped``.

    Notes whose books are right are removed; the others stay for the next run.
    """
    notes, dropped = tuple(notes), dropped or Dropped()
    paths = [path for note in notes for path in (note.library, *note.links)]
    if not paths and not dropped.paths:
        return Booked()
    run = _Run(books, find_owners(books, [*paths, *dropped.paths]))
    for note in notes:
        run.collect_note(note)
    run.collect_dropped(dropped)
    run.write_distributions()
    run.write_conda()
    for note in notes:
        run.remove_note(note)
    packages = sorted(book.label for book in run.entries if book.place not in run.failed)
    kept = run.still_listed(dropped.paths)
    return Booked(tuple(dict.fromkeys(packages)), run.growth, run.failed, kept)
