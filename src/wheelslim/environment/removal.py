"""Files that are taken out of a tree, once the books no longer list them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_error, storage_errors
from wheelslim.environment.conda_package import CONDA_META
from wheelslim.environment.distribution import DIST_INFO
from wheelslim.environment.owners import chosen, find_owners
from wheelslim.environment.replacement import check_writable
from wheelslim.errors import WheelslimError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wheelslim.environment.owners import Book
    from wheelslim.rewriter import Rewriter


@dataclass(frozen=True)
class Removal:
    """The files to remove: size in bytes by path; and, by name, those that cannot be removed."""

    root: Path
    sizes: dict[Path, int]
    failed: dict[str, WheelslimError]

    @classmethod
    def plan(
        cls,
        root: Path,
        names: Iterable[str],
        books: Sequence[Book],
        rewriter: Rewriter,
        packages: Sequence[str],
    ) -> Removal:
        """Ask ``rewriter.drops`` for every file.

        Files of dist-info directories and of ``conda-meta`` always stay.
        """
        wanted = {root / name for name in names if not _is_metadata(name) and rewriter.drops(name)}
        if not wanted:
            return cls(root, {}, {})
        owners = find_owners(books, wanted)
        if packages:
            asked = chosen(books, packages)
            wanted = {path for path in wanted if any(owned.book in asked for owned in owners.of(path))}
        sizes: dict[Path, int] = {}
        failed: dict[str, WheelslimError] = {}
        for path in sorted(wanted):
            try:
                check_writable(path.parent)
                owners.check_known(path)
                for owned in owners.of(path):
                    owned.book.check_writable()
                with storage_errors(path):
                    sizes[path] = path.lstat().st_size
            except WheelslimError as error:
                failed[path.relative_to(root).as_posix()] = error
        return cls(root, sizes, failed)

    @property
    def names(self) -> tuple[str, ...]:
        """The files, as paths inside the tree."""
        return tuple(self._name(path) for path in self.sizes)

    def carry_out(self, kept: Mapping[Path, WheelslimError]) -> Removal:
        """Remove the files but ``kept``, and directories that are empty then; returns what was removed."""
        failed = self.failed | {self._name(path): error for path, error in kept.items()}
        sizes: dict[Path, int] = {}
        for path in self.sizes.keys() - kept.keys():
            try:
                path.unlink(missing_ok=True)
                sizes[path] = self.sizes[path]
            except OSError as error:
                failed[self._name(path)] = storage_error(error, path)
        directories = {above for path in sizes for above in path.parents if above != self.root}
        inside = [directory for directory in directories if directory.is_relative_to(self.root)]
        for directory in sorted(inside, key=lambda found: -len(found.parts)):
            with suppress(OSError):  # Not empty.
                directory.rmdir()
        return Removal(self.root, dict(sorted(sizes.items())), failed)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _is_metadata(name: str) -> bool:
    return any(part == CONDA_META or part.endswith(DIST_INFO) for part in PurePosixPath(name).parts)
