"""One member written anew: the original checked, the pieces streamed, the result read back and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.deflate import BLOCK, Deflated, deflate, store
from wheelslim.archive.growing import GrowingRange
from wheelslim.archive.inflate import crc32, inflate, wrong_crc
from wheelslim.archive.record import check_content, compare
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.zip_format import Method
from wheelslim.archive.zip_writer import NewMember
from wheelslim.composed import Composed
from wheelslim.errors import ArchiveError, Place, VerifyError, WheelslimError
from wheelslim.pieces import stream
from wheelslim.rewriter import ChangedMember

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from wheelslim.archive.deflate import Compression
    from wheelslim.archive.inflated import Inflated
    from wheelslim.archive.record import RecordEntry
    from wheelslim.archive.workers import Workers
    from wheelslim.archive.zip_reader import ZipEntry
    from wheelslim.archive.zip_writer import ZipWriter
    from wheelslim.pieces import Piece
    from wheelslim.rewriter import Rewriter
    from wheelslim.source import Source


@dataclass(frozen=True, slots=True)
class MemberWriter:
    """Writes changed members into the open file ``fd``, called ``destination``.

    ``confirm`` says whether the new content is shown to the rewriter, and what was written read back.
    """

    fd: int
    destination: Path
    writer: ZipWriter
    workers: Workers
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
        release: Callable[[], None],
    ) -> tuple[Deflated, Future[ChangedMember]]:
        """Write ``pieces`` in place of ``entry``, whose row in RECORD is ``row``.

        The future is done when the original proved to be what RECORD says, the rewriter has confirmed
        the new content, and what was written proved to be that content, which goes on right behind the
        writing; ``release`` is called then, also on failure.
        """
        original_hash = original.sha256
        if original_hash is None or row.algorithm != "sha256":
            original_hash = self.workers.deflate.submit(self._check_original, entry, row, original)
        content = Composed.of(pieces, original.source)
        written = GrowingRange(self.fd)
        behind: list[Future[object]] = []
        if self.confirm:
            # In one thread, in this order.
            behind.append(
                self.workers.behind.submit(self._confirm, entry, original.source, content, rewriter)
            )
            behind.append(self.workers.behind.submit(self._read_back, entry, written, content))
        try:
            blocks = self._reported(
                stream(pieces, original.source, BLOCK), entry.compressed_size, content.size
            )
            done = self.add(NewMember.instead_of(entry), content.size, blocks, written)
        except BaseException:
            written.end(failed=True)
            raise
        written.end()

        def settle() -> ChangedMember:
            try:
                found = [future.result() for future in behind]
                sha256_before = original_hash.result()
                if row.algorithm == "sha256":
                    compare(row, bytes.fromhex(sha256_before), original.source.size)
            finally:
                release()
            if found and found[-1] != done.crc:
                raise self._unreadable(entry, "another CRC")
            start = written.start if found else None
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

    def _read_back(self, entry: ZipEntry, written: GrowingRange, content: Composed) -> int:
        """Inflate what is written, right behind the writer, and compare; returns its CRC.

        The SHA-256 of what was written is known then: it was taken of the bytes that were deflated.
        """
        update = crc32()
        crc = position = 0
        try:
            with storage_errors(self.destination):
                blocks = written.blocks()
                if entry.method == Method.DEFLATED:
                    blocks = inflate(blocks, content.size, Place())
                for block in self.workers.checked(blocks):
                    if block != content.read(position, len(block)):
                        raise self._unreadable(entry, f"other bytes from offset {position} on")
                    crc = update(block, crc)
                    position += len(block)
        except ArchiveError as error:
            raise self._unreadable(entry, error.what) from error
        return crc

    def _confirm(self, entry: ZipEntry, original: Source, content: Composed, rewriter: Rewriter) -> None:
        try:
            rewriter.confirm(entry.name, original, content)
        except WheelslimError as error:
            raise error.at(artifact=str(self.destination), member=entry.name) from error.__cause__

    def _unreadable(self, entry: ZipEntry, found: str) -> VerifyError:
        return VerifyError(
            "the written member does not read back",
            place=Place(artifact=str(self.destination), member=entry.name),
            found=found,
            hint="This is a fault of wheelslim or of the disk: please report it",
        )
