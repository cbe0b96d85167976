"""One member written anew: the original checked, the pieces streamed, the result read back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.deflate import BLOCK, Deflated, deflate, store
from wheelslim.archive.inflate import crc32, inflate, wrong_crc
from wheelslim.archive.inflated import Inflated, fill_scratch
from wheelslim.archive.record import check_member, new_hash
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.zip_format import Method
from wheelslim.archive.zip_writer import NewMember
from wheelslim.errors import ArchiveError, Place, VerifyError, WheelslimError
from wheelslim.pieces import stream, total_size
from wheelslim.rewriter import ChangedMember
from wheelslim.source import Source

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
        back and confirmed; ``release`` is called then, also on failure.
        """
        original_hash = self.workers.deflate.submit(self._check_original, entry, row, original)
        size = total_size(pieces)
        blocks = self._reported(stream(pieces, original.source, BLOCK), entry.compressed_size, size)
        done, offset = self.add(NewMember.instead_of(entry), size, blocks)
        if done.size != size:
            raise ArchiveError(
                "the new content has another size than planned",
                place=Place(member=entry.name),
                expected=f"{size} bytes",
                found=f"{done.size} bytes",
            )

        def settle() -> ChangedMember:
            try:
                sha256_before = original_hash.result()
                if self.confirm:
                    written = Source(self.fd, offset, done.compressed_size)
                    self._confirm(entry, original.source, written, done, rewriter)
            finally:
                release(original)
            return ChangedMember(entry.name, entry.size, done.size, sha256_before, done.sha256)

        return done, self.workers.behind.submit(settle)

    def add(self, member: NewMember, size: int, blocks: Iterable[bytes]) -> tuple[Deflated, int]:
        """Write ``blocks`` of ``size`` bytes in all; returns what went through and its offset."""

        def fill(write: Callable[[bytes], None]) -> Deflated:
            if member.method == Method.STORED:
                return store(blocks, write)
            pool, ahead = self.workers.deflate, self.workers.jobs + 1
            return deflate(blocks, write, self.compression, pool, ahead)

        return self.writer.add(member, size, fill)

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
        sha256 = hashlib.sha256()
        other = None if row.algorithm == "sha256" else new_hash(row)
        update = crc32()
        crc = 0
        for block in self.workers.checked(original.source.blocks()):
            sha256.update(block)
            if other is not None:
                other.update(block)
            if not original.checked:
                crc = update(block, crc)
        if not original.checked and crc != entry.crc:
            raise wrong_crc(entry, crc)
        check_member(row, (other or sha256).digest(), original.source.size)
        return sha256.hexdigest()

    def _confirm(
        self,
        entry: ZipEntry,
        original: Source,
        written: Source,
        done: Deflated,
        rewriter: Rewriter,
    ) -> None:
        back: Inflated | None = None
        try:
            if entry.method == Method.DEFLATED:
                back = self._read_back(entry, written, done)
                written = back.source
            rewriter.confirm(entry.name, original, written)
        except WheelslimError as error:
            raise error.at(artifact=str(self.destination), member=entry.name) from error.__cause__
        finally:
            if back is not None:
                back.release()

    def _read_back(self, entry: ZipEntry, written: Source, done: Deflated) -> Inflated:
        place = Place(member=entry.name)
        try:
            with storage_errors(self.destination):
                blocks = inflate(written, done.size, place)
                return fill_scratch(self.workers.checked(blocks), self.scratch)
        except ArchiveError as error:
            raise VerifyError(
                "the written member does not read back",
                place=place,
                found=error.what,
                hint="This is a fault of wheelslim or of the disk: please report it",
            ) from error
