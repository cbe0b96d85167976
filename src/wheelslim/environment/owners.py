"""Who owns a file: the distributions and conda packages whose books list it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from wheelslim.environment.conda_package import CONDA_META, CondaPackage
from wheelslim.environment.distribution import DIST_INFO, RECORD, Distribution
from wheelslim.errors import Place, StorageError, UsageError, WheelslimError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_MOST_NAMED = 8

Book: TypeAlias = "Distribution | CondaPackage"


@dataclass(frozen=True, slots=True)
class Owned:
    """A file as a book lists it; ``path`` is spelled as there."""

    book: Book
    path: str


@dataclass(frozen=True)
class Owners:
    """Owners by the real path of a file, and the books that do not parse with what is wrong."""

    by_path: dict[Path, tuple[Owned, ...]] = field(default_factory=dict)
    broken: dict[Book, WheelslimError] = field(default_factory=dict)

    def of(self, path: Path) -> tuple[Owned, ...]:
        """Return who owns ``path``; nobody, in a tree that nobody keeps books of."""
        return self.by_path.get(path, ())

    def check_known(self, path: Path) -> None:
        """Make sure that no book which cannot be read may list ``path``.

        One that does not parse may stay as it is where another book of its kind lists the path. One that the
        system did not let be read this time may be sound, and must not be passed over.

        Raises:
            WheelslimError: one may; this says what is wrong with it.
        """
        kinds = {type(owned.book) for owned in self.of(path)}
        for book, error in self.broken.items():
            owned = type(book) in kinds
            if path.is_relative_to(book.base) and (not owned or isinstance(error, StorageError)):
                raise error


def find_books(root: Path, names: Iterable[str]) -> tuple[Book, ...]:
    """Return the books in the directories ``names`` of the tree ``root``, and those that lie above it.

    A tree may be a part of an environment (``site-packages/torch``): then the nearest
    directories above it that hold dist-info directories or ``conda-meta`` count.
    """
    books: dict[Book, None] = {}
    for name in names:
        books.update(dict.fromkeys(_books(root / name)))
    for above in root.parents:
        found = list(_books_in(above))
        books.update(dict.fromkeys(found))
        if any(isinstance(book, CondaPackage) for book in found):
            break
    return tuple(books)


def check_books_listed(root: Path, unreadable: Mapping[str, str]) -> None:
    """Make sure that no directory of books is among what the system did not let be listed.

    The books in it would say nothing of what changes, and no later run would know.

    Raises:
        StorageError: one is.
    """
    for name, what in unreadable.items():
        directory = PurePosixPath(name).name
        if directory == CONDA_META or directory.endswith(DIST_INFO):
            raise StorageError(
                f"the books of packages cannot be read: {what}",
                place=Place(artifact=str(root / name)),
                hint="Nothing was changed: their entries would become wrong",
            )


def _books(directory: Path) -> Iterator[Book]:
    """Yield the books that a directory holds by their names, whatever they turn out to be."""
    if directory.name.endswith(DIST_INFO) and os.path.lexists(directory / RECORD):
        yield Distribution(directory)
    elif directory.name == CONDA_META:
        yield from map(CondaPackage, sorted(directory.glob("*.json")))


def _books_in(directory: Path) -> Iterator[Book]:
    try:
        for path in sorted(directory.glob(f"*{DIST_INFO}")):
            yield from _books(path)
        yield from _books(directory / CONDA_META)
    except OSError:
        return


def find_owners(books: Iterable[Book], paths: Iterable[Path]) -> Owners:
    """Look for ``paths``, which hold no symbolic links, in every book.

    A book may spell a path through a symbolic link (``lib64``), or out of its base (``../../bin``).
    """
    wanted = set(paths)
    basenames = {path.name for path in wanted}
    found: dict[Path, tuple[Owned, ...]] = {}
    broken: dict[Book, WheelslimError] = {}
    for book in books:
        try:
            listed = [path for path in book.listed() if PurePosixPath(path).name in basenames]
        except WheelslimError as error:
            broken[book] = error
            continue
        base = os.path.realpath(book.base)
        for spelled in listed:
            path = Path(os.path.normpath(os.path.join(base, spelled)))  # noqa: PTH118 - 10,000s of rows
            if path not in wanted:
                path = Path(os.path.realpath(path.parent)) / path.name
            if path in wanted:
                found[path] = (*found.get(path, ()), Owned(book, spelled))
    return Owners(found, broken)


def chosen(books: Sequence[Book], patterns: Sequence[str]) -> frozenset[Book]:
    """Return the books whose package a pattern names (``torch``, ``nvidia-*``).

    Raises:
        UsageError: a pattern names none.
    """
    from packaging.utils import canonicalize_name

    names = {book: canonicalize_name(book.name) for book in books}
    result: set[Book] = set()
    for pattern in patterns:
        wanted = canonicalize_name(pattern)
        matching = {book for book, name in names.items() if fnmatchcase(name, wanted)}
        if not matching:
            raise UsageError(
                f"no package here is called {pattern}",
                found=_some(sorted(set(names.values()))),
                hint="Names are those of pip; '*' stands for any letters, as in 'nvidia-*'",
            )
        result |= matching
    return frozenset(result)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return (", ".join(names[:_MOST_NAMED]) or "no package at all") + (
        f" and {more:,} more" if more > 0 else ""
    )
