"""The story of one tree, from its path to its slimmed libraries, true books and the report.

List it, see who owns what, make sure that every target is supported; then, several libraries at a
time, plan, write, prove and replace (``library_file``); bring the books up to date (``booking``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_errors
from wheelslim.archive.workers import available_cpus
from wheelslim.container_rewrite import ContainerRewriter
from wheelslim.environment.booking import Booked, Dropped, enter_changes
from wheelslim.environment.library_file import LibrarySlimmer, Replaced
from wheelslim.environment.library_pool import LibraryPool
from wheelslim.environment.listing import list_tree
from wheelslim.environment.lock import locked
from wheelslim.environment.note import Note
from wheelslim.environment.notices import listing_notices, sharing_notices
from wheelslim.environment.outcome import EnvironmentReport
from wheelslim.environment.owners import check_books_listed, chosen, find_books, find_owners
from wheelslim.environment.removal import Removal
from wheelslim.environment.support import survey_support
from wheelslim.errors import Place, StorageError, UsageError, WheelslimError
from wheelslim.groups.plan import plan_drops
from wheelslim.groups.rules import DropRequest
from wheelslim.kernels.rules import KernelRules
from wheelslim.loose.plan import plan_loose
from wheelslim.plan import Planner
from wheelslim.report.model import PruneReport
from wheelslim.rewriter import RewriteResult
from wheelslim.slim import LibraryOptions
from wheelslim.slim_rewriter import SlimRewriter
from wheelslim.spool import SpoolFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from wheelslim.environment.listing import Candidate, Listing
    from wheelslim.environment.owners import Book, Owners
    from wheelslim.plan import Request


@dataclass(frozen=True)
class EnvironmentOptions:
    """How to slim a tree; ``request`` says for which targets.

    ``packages`` limits the run to distributions and conda packages of these names (``nvidia-*``);
    ``jobs`` is the number of libraries at a time, the cores unless given. ``kernels`` are rules for
    what goes by name; ``recompress`` stores device code as zstd, by way of a
    nameless file in ``scratch_dir``, the tree unless given.
    """

    request: Request
    library: LibraryOptions = field(default_factory=LibraryOptions)
    drop: DropRequest = field(default_factory=DropRequest)
    kernels: KernelRules = field(default_factory=KernelRules)
    recompress: bool = False
    packages: tuple[str, ...] = ()
    dry_run: bool = False
    verify: bool = True
    jobs: int | None = None
    scratch_dir: Path | None = None


def slim_tree(
    path: Path, options: EnvironmentOptions, progress: Callable[[int], None] | None = None
) -> EnvironmentReport:
    """Slim the libraries of a directory tree in place; ``progress`` is called with bytes looked at.

    What cannot be read or replaced is named in the report and stays. After a stop or a kill every library
    is whole, old or new; running again finishes.

    Raises:
        WheelslimError: the tree cannot be listed, or nothing in it supports a target; nothing changed then.
        KeyboardInterrupt: stopped by the user; the books of what was done until then are right.
    """
    try:
        with storage_errors(path):
            root = path.resolve(strict=True)
            if not root.is_dir():
                raise UsageError("this is no directory", hint="wheelslim prune slims files")
        with locked(root), SpoolFile(options.scratch_dir or root) as spool:
            return _Run(path, root, options, spool).whole(progress or (lambda _size: None))
    except WheelslimError as error:
        raise error.at(artifact=str(path)) from error.__cause__


class _Run:
    """One run of ``slim_tree``: what its steps share."""

    def __init__(self, path: Path, root: Path, options: EnvironmentOptions, spool: SpoolFile) -> None:
        self._path = path
        self._root = root
        self._options = options
        self._rewriter = SlimRewriter(
            options.request,
            options.library,
            options.verify,
            kernels=options.kernels,
            storage=ContainerRewriter(options.request, spool, options.recompress),
        )
        self._notices: list[str] = []
        self._failed: dict[str, WheelslimError] = {}
        self._replaced: list[Replaced] = []

    def whole(self, progress: Callable[[int], None]) -> EnvironmentReport:
        """Do everything in order."""
        listing, books = self._list()
        finished = self._finish_earlier(listing, books)
        if finished:
            listing, books = self._list()
        if self._find_loose(listing):
            listing, books = self._list()
        removal = self._plan_removal(listing, books)
        candidates, owners = self._choose(listing, books, set(removal.names))
        self._notices.extend(survey_support(self._root, self._rewriter, candidates))
        try:
            self._slim(candidates, owners, progress)
        except BaseException:
            self._book(books, Dropped())
            raise
        booked = Booked()
        if not self._options.dry_run:
            booked = self._book(books, self._dropped(removal))
            removal = removal.carry_out(booked.kept)
        return self._report(listing, removal, booked, finished)

    def _list(self) -> tuple[Listing, tuple[Book, ...]]:
        listing = list_tree(self._root, self._rewriter.wants, clean=not self._options.dry_run)
        check_books_listed(self._root, listing.unreadable)
        return listing, find_books(self._root, listing.directories)

    def _finish_earlier(self, listing: Listing, books: Sequence[Book]) -> tuple[str, ...]:
        """Finish the books of a run that was killed; returns the libraries it had replaced."""
        if not listing.notes:
            return ()
        if self._options.dry_run:
            self._notices.append("an earlier run was stopped in the middle: a real run finishes it")
            return ()
        used: list[Note] = []
        for name in listing.notes:
            path = self._root / name
            try:
                note = Note.read(path)
                if note is None:
                    with storage_errors(path):
                        path.unlink()
                elif note.was_used():
                    with storage_errors(path):
                        note.finish_links(self._root)
                    used.append(note)
                else:
                    note.remove()
            except WheelslimError as error:
                self._failed[name] = error
        booked = enter_changes(books, used)
        self._take_failures(booked)
        return tuple(note.library.relative_to(self._root).as_posix() for note in used)

    def _find_loose(self, listing: Listing) -> bool:
        """Decide on device code in files of its own; returns whether some are to be looked into."""
        self._rewriter.loose = plan_loose(listing.tree, Planner(self._options.request))
        self._notices.extend(self._rewriter.loose.notices)
        return bool(self._rewriter.loose.fatbins)

    def _plan_removal(self, listing: Listing, books: Sequence[Book]) -> Removal:
        """Find the files of the groups that are to go.

        Raises:
            UsageError: the tree is a part of an environment: the rest may use what it seems to waste.
        """
        if "unused" in self._options.drop.groups and any(
            not book.place.is_relative_to(self._root) for book in books
        ):
            raise UsageError(
                "what nothing uses can be told of a whole environment only",
                hint="Give the environment's own directory, or leave out --drop unused",
            )
        drops = plan_drops(listing.tree, self._options.drop)
        self._rewriter.dropped = frozenset(drops.dropped) | frozenset(self._rewriter.loose.dropped)
        self._notices.extend(drops.notices)
        packages = self._options.packages
        return Removal.plan(self._root, listing.files, books, self._rewriter, packages)

    def _choose(
        self, listing: Listing, books: Sequence[Book], removed: set[str]
    ) -> tuple[list[Candidate], Owners]:
        """Leave out what the user did not ask for, or will be removed; the largest come first."""
        paths = {
            self._root / name: candidate
            for candidate in listing.candidates
            for name in (candidate.name, *candidate.links)
        }
        owners = find_owners(books, paths)
        candidates = listing.candidates
        if self._options.packages:
            wanted = chosen(books, self._options.packages)
            names = {
                paths[path].name for path in paths if any(owned.book in wanted for owned in owners.of(path))
            }
            candidates = tuple(candidate for candidate in candidates if candidate.name in names)
        staying = [candidate for candidate in candidates if candidate.name not in removed]
        return sorted(staying, key=lambda candidate: (-candidate.size, candidate.name)), owners

    def _slim(self, candidates: Sequence[Candidate], owners: Owners, progress: Callable[[int], None]) -> None:
        pool = LibraryPool(self._options.jobs or available_cpus())
        slimmer = LibrarySlimmer(self._root, self._rewriter, owners, pool.stop.is_set)

        def done(candidate: Candidate, failure: WheelslimError | None) -> None:
            if failure is not None:
                self._rewriter.reports.pop(candidate.name, None)
                self._failed[candidate.name] = failure.at(artifact=str(self._root / candidate.name))
            progress(candidate.size)

        try:
            pool.run(candidates, slimmer.plan if self._options.dry_run else slimmer.slim, done)
        finally:
            for replaced in pool.finished:
                self._take(replaced)

    def _take(self, replaced: Replaced) -> None:
        self._replaced.append(replaced)
        for path, error in replaced.failed.items():
            self._failed[self._name(path)] = error

    def _dropped(self, removal: Removal) -> Dropped:
        if not removal.sizes:
            return Dropped()
        stamp = self._rewriter.stamp(RewriteResult((), (), 0, 0))
        return Dropped(tuple(removal.sizes), json.loads(stamp))

    def _book(self, books: Sequence[Book], dropped: Dropped) -> Booked:
        notes = [replaced.note for replaced in self._replaced]
        try:
            booked = enter_changes(books, notes, dropped)
        except BaseException:  # Stopped in the middle: doing it twice is doing it once.
            enter_changes(books, notes, dropped)
            raise
        self._take_failures(booked)
        return booked

    def _take_failures(self, booked: Booked) -> None:
        for path, error in booked.failed.items():
            self._failed[self._name(path)] = error

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)

    def _report(
        self, listing: Listing, removal: Removal, booked: Booked, finished: tuple[str, ...]
    ) -> EnvironmentReport:
        self._failed.update(removal.failed)
        for name, what in listing.unreadable.items():
            self._failed[name] = StorageError(what, place=Place(artifact=str(self._root / name)))
        request, dry_run, reports = self._options.request, self._options.dry_run, self._rewriter.reports
        changes = [replaced.note.change for replaced in self._replaced]
        saved = sum(removal.sizes.values()) - booked.growth
        if dry_run:
            saved += sum(
                report.account.size_before - report.account.size_after for report in reports.values()
            )
        else:
            saved += sum(change.size_before - change.size_after for change in changes)
        prune = PruneReport(
            artifact=str(self._path),
            output=None if dry_run else str(self._path),
            targets=tuple(target.name for target in request.targets),
            size_before=listing.size,
            size_after=None if dry_run else listing.size - saved,
            installed_before=listing.size,
            installed_after=listing.size - saved,
            libraries=tuple(reports[name] for name in sorted(reports)),
            dropped=removal.names,
            notices=(
                *self._notices,
                *listing_notices(listing),
                *sharing_notices([one.note.change.name for one in self._replaced if one.shared]),
                *self._rewriter.notices,
                *self._rewriter.outcome_notices,
            ),
            ptx=request.ptx.value,
            exact=request.exact,
        )
        return EnvironmentReport.of(
            prune, [change.name for change in changes], booked.packages, finished, self._failed
        )
