"""A wheel opened for reading."""

from __future__ import annotations

import os
import stat
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind, Member, MemberType
from wheelslim.archive.inflate import heads, member_blocks
from wheelslim.archive.inflated import inflate_member
from wheelslim.archive.record import Record
from wheelslim.archive.scratch import Scratch
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.wheel_name import WheelName
from wheelslim.archive.zip_reader import read_zip
from wheelslim.errors import ArchiveError, Place, WheelslimError
from wheelslim.rewriter import HEAD_SIZE
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from wheelslim.archive.zip_reader import ZipArchive, ZipEntry

READ_LIMIT = 64 << 20
STAMP = "wheelslim.json"
_SIGNATURES = ("RECORD.jws", "RECORD.p7s")


class WheelArtifact:
    """A wheel: its zip file, its name, and its dist-info directory (``dist_info``, without slash).

    ``name`` comes from the file name, or from METADATA and WHEEL where the file is named otherwise.
    """

    kind = ArtifactKind.WHEEL

    def __init__(self, path: Path, max_ratio: float | None = None, scratch_dir: Path | None = None) -> None:
        """Open ``path`` and read its headers; nothing is inflated but METADATA and WHEEL.

        Raises:
            ArchiveError: no sound zip file, or not one dist-info directory with METADATA, WHEEL and
                RECORD.
            StorageError: the operating system refuses.
        """
        self.path = path
        self._scratch_dir = scratch_dir or Path(tempfile.gettempdir())
        with storage_errors(path):
            self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            with storage_errors(path):
                self.archive: ZipArchive = read_zip(Source.of_file(self._fd), max_ratio)
                self._entries = {entry.name: entry for entry in self.archive.entries}
                self.dist_info = self._find_dist_info()
                self.name = self._find_name()
        except WheelslimError as error:
            self.close()
            raise error.at(artifact=str(path)) from error.__cause__
        except BaseException:
            self.close()
            raise

    def _find_dist_info(self) -> str:
        found = {
            name.partition("/")[0]
            for name in self._entries
            if ".dist-info/" in name and name.partition("/")[0].endswith(".dist-info")
        }
        if len(found) != 1:
            raise ArchiveError(
                "a wheel has exactly one dist-info directory",
                expected="name-version.dist-info",
                found=", ".join(sorted(found)) or "none",
                hint="If this is no wheel, unpack it and give the directory or the libraries",
            )
        (dist_info,) = found
        for file in ("METADATA", "WHEEL", "RECORD"):
            if f"{dist_info}/{file}" not in self._entries:
                raise ArchiveError(
                    f"the wheel has no {file}",
                    expected=f"{dist_info}/{file}",
                    hint="Pack the wheel again (python -m wheel pack)",
                )
        return dist_info

    def _find_name(self) -> WheelName:
        try:
            return WheelName.parse(self.path.name)
        except ArchiveError:
            return WheelName.derive(
                self.read(f"{self.dist_info}/METADATA"), self.read(f"{self.dist_info}/WHEEL")
            )

    @property
    def size(self) -> int:
        """Bytes of the wheel file."""
        return self.archive.source.size

    @property
    def record_name(self) -> str:
        """The member that is RECORD."""
        return f"{self.dist_info}/RECORD"

    @property
    def wheel_file_name(self) -> str:
        """The member that is WHEEL."""
        return f"{self.dist_info}/WHEEL"

    @property
    def stamp_name(self) -> str:
        """The member that says that, and how, a wheel was slimmed."""
        return f"{self.dist_info}/{STAMP}"

    @property
    def signature_names(self) -> tuple[str, ...]:
        """The members that sign RECORD, whether they are there or not."""
        return tuple(f"{self.dist_info}/{name}" for name in _SIGNATURES)

    def entry(self, name: str) -> ZipEntry:
        """Return the headers of a member.

        Raises:
            ArchiveError: there is no such member.
        """
        try:
            return self._entries[name]
        except KeyError:
            raise ArchiveError(
                "the wheel has no such member", place=Place(artifact=str(self.path), member=name)
            ) from None

    def has(self, name: str) -> bool:
        """Whether there is a member of this name."""
        return name in self._entries

    def record(self) -> Record:
        """Read RECORD.

        Raises:
            ArchiveError: it does not parse, or does not list all members.
        """
        record = Record.parse(self.read(self.record_name), self.record_name)
        record.check_lists(
            (entry.name for entry in self.archive.entries if not entry.is_directory),
            {*self.signature_names, self.record_name},
        )
        return record

    def read(self, name: str) -> bytes:
        """Return a small member whole (metadata; at most 64 MiB).

        Raises:
            ArchiveError: no such member, it is larger, or does not inflate to its size and CRC.
        """
        entry = self.entry(name)
        if entry.size > READ_LIMIT:
            raise ArchiveError(
                "the member is too large to be metadata",
                place=Place(artifact=str(self.path), member=name),
                expected=f"at most {READ_LIMIT} bytes",
                found=f"{entry.size} bytes",
            )
        return b"".join(member_blocks(self.archive, entry))

    @cached_property
    def heads(self) -> dict[str, bytes]:
        """The first ``HEAD_SIZE`` bytes of every file, by name; b"" where they do not inflate."""
        files = [entry for entry in self.archive.entries if member_type(entry) is MemberType.FILE]
        files.sort(key=lambda entry: entry.header_offset)
        names = (entry.name for entry in files)
        with storage_errors(self.path):
            return dict(zip(names, heads(self.archive, files, HEAD_SIZE), strict=True))

    def walk(self, wants: Callable[[Member, bytes], bool]) -> Iterator[tuple[Member, Source | None]]:
        """Yield every member in stored order; see ``Artifact.walk``."""
        with storage_errors(self.path), Scratch(self._scratch_dir) as scratch:
            for entry in self.archive.entries:
                member = member_of(entry)
                if member.type is not MemberType.FILE or not wants(member, self.heads[member.name]):
                    yield member, None
                    continue
                inflated = inflate_member(self.archive, entry, scratch)
                try:
                    yield member, inflated.source
                finally:
                    inflated.release()

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> WheelArtifact:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()


def member_type(entry: ZipEntry) -> MemberType:
    """Tell what a member is, from its name and its Unix mode."""
    return _type_of(entry, entry.unix_mode)


def _type_of(entry: ZipEntry, mode: int | None) -> MemberType:
    if entry.is_directory:
        return MemberType.DIRECTORY
    if mode is not None and stat.S_ISLNK(mode):
        return MemberType.SYMLINK
    return MemberType.FILE


def member_of(entry: ZipEntry) -> Member:
    """Describe a member as every artifact does."""
    mode = entry.unix_mode
    return Member(
        name=entry.name,
        size=entry.size,
        stored=entry.compressed_size,
        type=_type_of(entry, mode),
        mode=None if mode is None else stat.S_IMODE(mode),
        facts=(entry.date, entry.time, entry.internal_attributes, entry.comment),
    )
