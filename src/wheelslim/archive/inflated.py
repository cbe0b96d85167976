"""A member as a random-access Source: in a scratch file, or where it lies if it is stored."""

from __future__ import annotations

import hashlib
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.file_copy import write_at
from wheelslim.archive.growing import GrowingRange
from wheelslim.archive.inflate import member_blocks
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.zip_format import Method
from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from wheelslim.archive.scratch import Scratch, ScratchFile
    from wheelslim.archive.workers import Workers
    from wheelslim.archive.zip_reader import ZipArchive, ZipEntry


@dataclass(frozen=True, slots=True)
class Inflated:
    """``source`` is valid until ``release``; ``checked`` says whether the CRC was compared.

    ``sha256`` is that of the content (hex), where it was taken while the member was inflated.
    """

    source: Source
    checked: bool
    sha256: Future[str] | None = None
    _scratch: Scratch | None = None
    _file: ScratchFile | None = None

    def release(self) -> None:
        """Let the scratch file go to the next one. Call it once."""
        _await(self.sha256)
        if self._scratch is not None and self._file is not None:
            self._scratch.give_back(self._file)


def inflate_member(
    archive: ZipArchive, entry: ZipEntry, scratch: Scratch, workers: Workers | None = None
) -> Inflated:
    """Make a member readable at random; with ``workers``, its hash is taken right behind, in another thread.

    Raises:
        ArchiveError: it does not inflate to its own size and CRC.
        StorageError: the operating system refuses.
        StoppedError: the run of ``workers`` has failed elsewhere.
    """
    if entry.method == Method.STORED:
        return Inflated(archive.compressed(entry), checked=False)
    blocks = member_blocks(archive, entry)
    if workers is not None:
        blocks = workers.checked(blocks)
    file = scratch.take(entry.size)
    written = GrowingRange(file.fd)
    size = 0
    sha256 = None
    try:
        if workers is not None:
            sha256 = workers.hash.submit(_sha256, workers.checked(written.blocks()))
        for block in blocks:
            with storage_errors(scratch.directory):
                write_at(file.fd, block, size)
            written.grew(size, len(block))
            size += len(block)
        written.end()
    except BaseException:
        written.end(failed=True)
        _await(sha256)
        scratch.give_back(file)
        raise
    return Inflated(Source(file.fd, 0, size), True, sha256, scratch, file)


def _await(sha256: Future[str] | None) -> None:
    """Wait until nobody reads the scratch file any more."""
    if sha256 is not None:
        with suppress(CancelledError):
            sha256.exception()


def _sha256(blocks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def part_of_member(archive: ZipArchive, entry: ZipEntry, start: int, size: int, workers: Workers) -> bytes:
    """Inflate a member, keep ``size`` of its bytes from ``start`` on and nothing else.

    Raises:
        ArchiveError: it does not inflate to its own size and CRC.
        StoppedError: the run of ``workers`` has failed elsewhere.
    """
    kept = bytearray()
    position = 0
    for block in workers.checked(member_blocks(archive, entry)):
        if position + len(block) > start and len(kept) < size:
            begin = max(0, start - position)
            kept += block[begin : begin + size - len(kept)]
        position += len(block)
    return bytes(kept)
