"""One member written anew: the original checked, the pieces streamed, the result read back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.deflate import BLOCK, Deflated, deflate, store
from wheelslim.archive.growing import GrowingRange
from wheelslim.archive.inflate import crc32, inflate, wrong_crc
from wheelslim.archive.inflated import Inflated, fill_scratch
from wheelslim.archive.record import check_content
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.zip_format import Method
from wheelslim.archive.zip_writer import NewMember
from wheelslim.errors import ArchiveError, Place, VerifyError, WheelslimError
from wheelslim.pieces import stream, total_size
from wheelslim.rewriter import ChangedMember

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from wheelslim.archive.deflate import Compression
    from wheelslim.archive.record import RecordEntry
    from wheelslim.archive.scratch import Scratch
    from wheelslim.archive.workers import Workers
    from wheelslim.archive.zip_reader import ZipEntry
    from wheelslim.archive.zip_writer import ZipWriter
    from wheelslim.pieces import Piece
    from wheelslim.rewriter import Rewriter
    from wheelslim.source import Source


@dataclass(frozen=True, slots=True)
class _ReadBack:
    """A member as the file holds it now."""

    inflated: Inflated
    crc: int
    sha256: str


@dataclass(frozen=True, slots=True)
class MemberWriter:
    """Writes changed members into the open file ``fd``, called ``destination``.

    ``confirm`` says whether the result is read back and shown to the rewriter.
    """

    fd: int
    destination: Path
    writer: ZipWriter
    workers: Workers
    scratch: Scratch
    compression: Compression
    confirm: bool
    progress: Callable[[int], None]

    def write(
        self,
        entry: ZipEntry,
        row: RecordEntry,
        original: Inflated,
        pieces: Sequence[Piece],
        *,
        rewriter: Rewriter,
        release: Callable[[Inflated], None],
    ) -> tuple[Deflated, Future[ChangedMember]]:
        """Write ``pieces`` in place of ``entry``, whose row in RECORD is ``row``.

        The future is done when the original proved to be what RECORD says and the result was read
        back, which goes on right behind the writing, and confirmed; ``release`` is called then,
        also on failure.
        """
        original_hash = self.workers.deflate.submit(self._check_original, entry, row, original)
        size = total_size(pieces)
        written = GrowingRange(self.fd)
        back = self.workers.behind.submit(self._read_back, entry, written, size) if self.confirm else None
        try:
            blocks = self._reported(stream(pieces, original.source, BLOCK), entry.compressed_size, size)
            done = self.add(NewMember.instead_of(entry), size, blocks, written)
        except BaseException:
            written.end(failed=True)
            raise
        written.end()

        def settle() -> ChangedMember:
            try:
                if back is not None:
                    self._confirm(entry, original.source, back.result(), done, rewriter)
                sha256_before = original_hash.result()
            finally:
                release(original)
            start = written.start if back is not None else None
            return ChangedMember(entry.name, entry.size, done.size, sha256_before, done.sha256, start)

        return done, self.workers.behind.submit(settle)

    def add(
        self, member: NewMember, size: int, blocks: Iterable[bytes], written: GrowingRange | None = None
    ) -> Deflated:
        """Write ``blocks`` of ``size`` bytes in all, telling ``written`` of every step.

        Raises:
            ArchiveError: the blocks have another size in all.
        """

        def fill(write: Callable[[bytes], int]) -> Deflated:
            def write_on(data: bytes) -> None:
                offset = write(data)
                if written is not None:
                    written.grew(offset, len(data))

            if member.method == Method.STORED:
                return store(blocks, write_on)
            pool, ahead = self.workers.deflate, self.workers.jobs + 1
            return deflate(blocks, write_on, self.compression, pool, ahead)

        done = self.writer.add(member, size, fill)
        if done.size != size:
            raise ArchiveError(
                "the new content has another size than planned",
                place=Place(member=member.name),
                expected=f"{size} bytes",
                found=f"{done.size} bytes",
            )
        return done

    def _reported(self, blocks: Iterable[bytes], stored: int, size: int) -> Iterator[bytes]:
        """Yield ``blocks`` and report progress, ``stored`` bytes by the time ``size`` have passed."""
        passed = reported = 0
        for block in blocks:
            yield block
            passed += len(block)
            due = stored * passed // size
            self.progress(due - reported)
            reported = due
        self.progress(stored - reported)

    def _check_original(self, entry: ZipEntry, row: RecordEntry, original: Inflated) -> str:
        """Compare the original with its RECORD row, and with its CRC where nobody has yet."""
        update = crc32()
        crc = 0

        def summed(blocks: Iterable[bytes]) -> Iterator[bytes]:
            nonlocal crc
            for block in blocks:
                crc = update(block, crc)
                yield block

        blocks = self.workers.checked(original.source.blocks())
        sha256 = check_content(row, blocks if original.checked else summed(blocks))
        if not original.checked and crc != entry.crc:
            raise wrong_crc(entry, crc)
        return sha256

    def _read_back(self, entry: ZipEntry, written: GrowingRange, size: int) -> _ReadBack:
        """Inflate what is written into scratch, right behind the writer, and hash it."""
        sha256 = hashlib.sha256()
        update = crc32()
        crc = 0

        def hashed(blocks: Iterable[bytes]) -> Iterator[bytes]:
            nonlocal crc
            for block in self.workers.checked(blocks):
                sha256.update(block)
                crc = update(block, crc)
                yield block

        try:
            with storage_errors(self.destination):
                blocks = written.blocks()
                if entry.method == Method.DEFLATED:
                    blocks = inflate(blocks, size, Place())
                inflated = fill_scratch(hashed(blocks), self.scratch)
        except ArchiveError as error:
            raise self._unreadable(entry, error.what) from error
        return _ReadBack(inflated, crc, sha256.hexdigest())

    def _confirm(
        self, entry: ZipEntry, original: Source, back: _ReadBack, done: Deflated, rewriter: Rewriter
    ) -> None:
        try:
            if (back.inflated.source.size, back.crc, back.sha256) != (done.size, done.crc, done.sha256):
                raise self._unreadable(entry, "other bytes than were written")
            rewriter.confirm(entry.name, original, back.inflated.source)
        except WheelslimError as error:
            raise error.at(artifact=str(self.destination), member=entry.name) from error.__cause__
        finally:
            back.inflated.release()

    def _unreadable(self, entry: ZipEntry, found: str) -> VerifyError:
        return VerifyError(
            "the written member does not read back",
            place=Place(artifact=str(self.destination), member=entry.name),
            found=found,
            hint="This is a fault of wheelslim or of the disk: please report it",
        )
