"""Conda packages, ``.conda`` and ``.tar.bz2``, opened for reading."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from wheelslim.archive.allowance import Allowance
from wheelslim.archive.artifact import ArtifactKind, Member, MemberType
from wheelslim.archive.conda_container import Component, Container, read_container
from wheelslim.archive.conda_name import INDEX_JSON, CondaName
from wheelslim.archive.scratch import Scratch, ScratchFile
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.tar_header import BLOCK_SIZE
from wheelslim.archive.tar_names import TarNames
from wheelslim.errors import ArchiveError, Place, StorageError, WheelslimError
from wheelslim.rewriter import HEAD_SIZE
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from wheelslim.archive.quick_copy import QuickCopy
    from wheelslim.archive.tar_header import TarHeader
    from wheelslim.archive.tar_stream import TarReader

INFO = "info/"
STAMP = "info/wheelslim.json"
MAX_METADATA = 64 << 20
_OWNER, _TIME, _NAMES = slice(108, 124), slice(136, 148), slice(265, 329)
"""Where a ustar header holds uid and gid, mtime, and the names of user and group (POSIX.1-1988)."""


class CondaArtifact:
    """A conda package opened for reading."""

    def __init__(self, path: Path, scratch_dir: Path | None = None) -> None:
        """Open ``path``; candidates of ``walk`` lie in ``scratch_dir`` (default: that of the system).

        Raises:
            ArchiveError: it is no conda package, or ``info/index.json`` is missing or broken.
            StorageError: the operating system refuses.
        """
        self._path = path
        self._scratch_dir = scratch_dir
        with storage_errors(path):
            self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            with self.located():
                self.container: Container = read_container(Source.of_file(self._fd))
                self.name = CondaName.parse(self.read(INDEX_JSON))
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self._path

    @property
    def kind(self) -> ArtifactKind:
        """``CONDA`` or ``TAR_BZ2``, by its content."""
        return self.container.kind

    @property
    def size(self) -> int:
        """Bytes of the package's file."""
        return self.container.source.size

    def walk(self, wants: Callable[[Member, bytes], bool]) -> Iterator[tuple[Member, Source | None]]:
        """Yield every member in stored order; see ``Artifact.walk``.

        Names are those of the unpacked package, whichever tar they lie in. The package is
        decompressed once; a wanted file lies in a scratch file until the next step.

        Raises:
            ArchiveError: a tar does not parse, is truncated, or holds a name or link that leads
                outside the package.
        """
        directory = self._scratch_dir or Path(tempfile.gettempdir())
        with self.located(), Scratch(directory) as scratch:
            for header, tar in self.headers():
                member = member_of(header)
                head = tar.head(HEAD_SIZE)
                if header.type is not MemberType.FILE or not wants(member, head):
                    yield member, None
                    continue
                with member_place(header.name):
                    file = scratch.take()
                    source = spill(file, head, tar.data(), directory)
                yield member, source
                scratch.give_back(file)

    def headers(self) -> Iterator[tuple[TarHeader, TarReader]]:
        """Yield each member's header with the reader that stands at its data, names checked."""
        names = TarNames(Allowance(self.size))
        for component in self.container.components:
            yield from self.component_headers(component, names)
        names.finish()

    def component_headers(
        self,
        component: Component,
        names: TarNames,
        progress: Callable[[int], None] | None = None,
        copy: QuickCopy | None = None,
    ) -> Iterator[tuple[TarHeader, TarReader]]:
        """Yield the members of one tar; ``names`` takes their names in.

        ``progress`` is called with the number of compressed bytes of each step; ``copy`` takes the
        uncompressed tar.
        """
        payload = False
        with self.located(), component.open(progress, copy) as tar:
            for header in tar:
                names.add(header, component.name)
                if is_info(header.name):
                    # Clients and index tools stop reading at the first member that is not of info/.
                    if payload and component.name == "all":
                        raise ArchiveError(
                            "a member of info/ comes after the package's files",
                            place=Place(member=header.name),
                            hint="Pack the package again (cph extract, cph create)",
                        )
                elif not leads(header.name):
                    payload = True
                yield header, tar

    def read(self, name: str) -> bytes:
        """Return a small member whole; those of ``info/`` cost little.

        Raises:
            ArchiveError: no such member, or it is larger than 64 MiB.
        """
        with self.located():
            found = self._find(name)
            if found is None:
                raise ArchiveError(
                    "the package has no such member",
                    place=Place(member=name),
                    hint="Download or build the package again" if is_info(name) else None,
                )
            return found

    def has(self, name: str) -> bool:
        """Whether ``info/`` holds the member ``name``."""
        with self.located():
            return self._find(name) is not None

    def _find(self, name: str) -> bytes | None:
        wanted = ("info", "all") if is_info(name) else ("pkg", "all")
        component = self.container.component(*wanted)
        if component is None:  # read_container saw to it
            return None
        with component.open() as tar:
            for header in tar:
                if header.name == name and header.type is MemberType.FILE:
                    if header.size > MAX_METADATA:
                        raise ArchiveError(
                            "the member is too large to be metadata",
                            place=Place(member=name),
                            expected=f"at most {MAX_METADATA} bytes",
                            found=f"{header.size} bytes",
                        )
                    return b"".join(tar.data())
                if component.name == "all" and is_info(name) and not leads(header.name):
                    return None
        return None

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add this artifact's path to the errors of the block."""
        try:
            yield
        except WheelslimError as error:
            error.at(artifact=str(self._path))
            raise
        except OSError as error:
            raise StorageError(str(error.strerror or error), place=Place(artifact=str(self._path))) from error

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> CondaArtifact:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()


def is_info(name: str) -> bool:
    """Whether a member is metadata, which clients do not install (CEP 35)."""
    return name == "info" or name.startswith(INFO)


def leads(name: str) -> bool:
    """Whether a member of a ``.tar.bz2`` stands before the package's files: ``info/``, or the root."""
    return name in ("", ".") or is_info(name)


def member_of(header: TarHeader) -> Member:
    """Return the member that a tar header describes."""
    return Member(
        name=header.name,
        size=header.size,
        type=header.type,
        mode=header.mode,
        link_target=header.link_target,
        facts=(
            header.raw[-BLOCK_SIZE:][_OWNER],
            header.raw[-BLOCK_SIZE:][_TIME],
            header.raw[-BLOCK_SIZE:][_NAMES],
        ),
    )


@contextmanager
def member_place(name: str) -> Iterator[None]:
    """Add the member's name to the errors of the block."""
    try:
        yield
    except WheelslimError as error:
        error.at(member=name)
        raise


def spill(file: ScratchFile, head: bytes, data: Iterable[bytes | memoryview], directory: Path) -> Source:
    """Write ``head`` and ``data`` into a scratch file; return them as a Source.

    Raises:
        StorageError: the scratch directory is full.
    """
    position = 0
    with storage_errors(directory):
        os.lseek(file.fd, 0, os.SEEK_SET)
    for part in chain((head,), data):
        position += len(part)
        with storage_errors(directory):
            write_all(file.fd, part)
    return Source(file.fd, 0, position)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of ``data`` at the file's position."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
