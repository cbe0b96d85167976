"""A member as a random-access Source: in a scratch file, or where it lies if it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.file_copy import write_at
from wheelslim.archive.inflate import member_blocks
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.zip_format import Method
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelslim.archive.scratch import Scratch, ScratchFile
    from wheelslim.archive.workers import Workers
    from wheelslim.archive.zip_reader import ZipArchive, ZipEntry


@dataclass(frozen=True, slots=True)
class Inflated:
    """``source`` is valid until ``release``; ``checked`` says whether the CRC was compared."""

    source: Source
    checked: bool
    _scratch: Scratch | None = None
    _file: ScratchFile | None = None

    def release(self) -> None:
        """Let the scratch file go to the next one. Call it once."""
        if self._scratch is not None and self._file is not None:
            self._scratch.give_back(self._file)


def inflate_member(
    archive: ZipArchive, entry: ZipEntry, scratch: Scratch, workers: Workers | None = None
) -> Inflated:
    """Make a member readable at random.

    Raises:
        ArchiveError: it does not inflate to its own size and CRC.
        StorageError: the operating system refuses.
        StoppedError: the run of ``workers`` has failed elsewhere.
    """
    if entry.method == Method.STORED:
        return Inflated(archive.compressed(entry), checked=False)
    blocks = member_blocks(archive, entry)
    return fill_scratch(blocks if workers is None else workers.checked(blocks), scratch)


def fill_scratch(blocks: Iterable[bytes], scratch: Scratch) -> Inflated:
    """Write ``blocks`` to a scratch file.

    Raises:
        StorageError: the operating system refuses.
    """
    file = scratch.take()
    size = 0
    try:
        for block in blocks:
            with storage_errors(scratch.directory):
                write_at(file.fd, block, size)
            size += len(block)
    except BaseException:
        scratch.give_back(file)
        raise
    return Inflated(Source(file.fd, 0, size), True, scratch, file)
