"""Writing a wheel anew: unchanged members as they lie, changed ones streamed.

Three kinds of work overlap: the next candidates are inflated and planned, the present one is
deflated, and the one before is read back and confirmed.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import MemberType, check_stamp_place
from wheelslim.archive.candidates import ORIGINALS, Candidates
from wheelslim.archive.changed_member import MemberWriter
from wheelslim.archive.deflate import Compression
from wheelslim.archive.inflate import member_blocks
from wheelslim.archive.record import RecordEntry, check_content
from wheelslim.archive.scratch import Scratch
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.wheel import member_type
from wheelslim.archive.wheel_name import with_build_line
from wheelslim.archive.workers import Workers, available_cpus
from wheelslim.archive.zip_writer import NewMember, ZipWriter
from wheelslim.errors import WheelslimError
from wheelslim.rewriter import ChangedMember, RewriteResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path

    from wheelslim.archive.candidates import Candidate
    from wheelslim.archive.record import Record
    from wheelslim.archive.wheel import WheelArtifact
    from wheelslim.archive.zip_reader import ZipEntry
    from wheelslim.rewriter import Rewriter


@dataclass(frozen=True)
class WheelOptions:
    """How to write the wheel.

    ``build_tag`` goes into WHEEL; None leaves it alone. ``scratch_dir`` is the destination's
    directory unless given. ``check_input`` also reads and checks the members that stay unchanged;
    ``confirm`` reads the changed ones back. ``progress`` is called with numbers of input bytes,
    which add up to the size of the wheel.
    """

    build_tag: str | None = None
    compression: Compression = Compression.DEFAULT
    jobs: int = field(default_factory=available_cpus)
    scratch_dir: Path | None = None
    check_input: bool = False
    confirm: bool = True
    progress: Callable[[int], None] | None = None


def rewrite_wheel(
    artifact: WheelArtifact, destination: Path, rewriter: Rewriter, options: WheelOptions
) -> RewriteResult:
    """Write ``artifact``, as ``rewriter`` wants it, to the existing file ``destination``.

    The caller owns ``destination`` and gives it its name afterwards (``output.atomic_output``).

    Raises:
        ArchiveError: RECORD is wrong, or a member that is rewritten does not have its CRC and hash.
        VerifyError: what was written does not read back as planned.
        StorageError: the operating system refuses.
    """
    try:
        with storage_errors(destination):
            fd = os.open(destination, os.O_RDWR | os.O_TRUNC | getattr(os, "O_BINARY", 0))
            try:
                with (
                    Scratch(options.scratch_dir or destination.parent) as scratch,
                    Workers(options.jobs, ORIGINALS) as workers,
                ):
                    run = _Run(
                        artifact,
                        rewriter,
                        options,
                        fd=fd,
                        destination=destination,
                        scratch=scratch,
                        workers=workers,
                    )
                    return run.write()
            finally:
                os.close(fd)
    except WheelslimError as error:
        raise error.at(artifact=str(artifact.path)) from error.__cause__


class _Run:
    """One run of ``rewrite_wheel``: what its parts share."""

    def __init__(
        self,
        artifact: WheelArtifact,
        rewriter: Rewriter,
        options: WheelOptions,
        *,
        fd: int,
        destination: Path,
        scratch: Scratch,
        workers: Workers,
    ) -> None:
        self._artifact = artifact
        self._rewriter = rewriter
        self._options = options
        self._scratch = scratch
        self._workers = workers
        self._record: Record
        self._rows: dict[str, RecordEntry] = {}
        self._settled: list[Future[ChangedMember]] = []
        self._checks: list[Future[str]] = []
        self._reported = 0
        self._progress_lock = threading.Lock()
        self._writer = ZipWriter(fd, artifact.archive, workers.deflate, self._progress)
        self._member_writer = MemberWriter(
            fd, destination, self._writer, workers, options.compression, options.confirm, self._progress
        )

    def _progress(self, size: int) -> None:
        with self._progress_lock:
            self._reported += size
            if self._options.progress is not None:
                self._options.progress(size)

    def write(self) -> RewriteResult:
        """Do everything in the order of the file, but RECORD and the stamp last."""
        artifact = self._artifact
        entries = artifact.archive.entries
        # A link in a wheel is a file to installers, and is replaced as one.
        check_stamp_place(artifact.stamp_name, ((entry.name, MemberType.FILE) for entry in entries))
        dropped, notices = self._find_dropped()
        late = {artifact.record_name, artifact.stamp_name}
        members = [
            entry
            for entry in sorted(artifact.archive.entries, key=lambda entry: entry.header_offset)
            if entry.name not in dropped and entry.name not in late
        ]
        candidates = Candidates(artifact, members, self._rewriter, self._scratch, self._workers)
        candidates.start()
        self._record = artifact.record()
        for entry in members:
            candidate = candidates.result(entry.name)
            if candidate is not None:
                self._write_changed(entry, candidate)
            elif entry.name == artifact.wheel_file_name and self._options.build_tag is not None:
                self._write_wheel_file(entry, self._options.build_tag)
            else:
                self._copy(entry)
        self._writer.wait()
        for check in self._checks:
            check.result()
        changed = tuple(future.result() for future in self._settled)
        return self._finish(changed, dropped, notices)

    def _find_dropped(self) -> tuple[dict[str, None], tuple[str, ...]]:
        """Return the members that are left out, and notices."""
        artifact = self._artifact
        kept = {artifact.record_name, artifact.wheel_file_name, f"{artifact.dist_info}/METADATA"}
        signatures = [name for name in artifact.signature_names if artifact.has(name)]
        dropped = dict.fromkeys(
            entry.name
            for entry in artifact.archive.entries
            if entry.name in signatures
            or (
                entry.name not in kept
                and member_type(entry) is MemberType.FILE
                and self._rewriter.drops(entry.name)
            )
        )
        notices = [
            f"{name} was dropped: it signs the original's RECORD, which is no longer the same"
            for name in signatures
        ]
        if artifact.archive.prefix:
            notices.append(f"{artifact.archive.prefix} bytes before the zip archive were kept as they are")
        return dropped, tuple(notices)

    def _write_changed(self, entry: ZipEntry, candidate: Candidate) -> None:
        row = self._record.expected(entry.name)
        done, settled = self._member_writer.write(
            entry,
            row,
            candidate.original,
            candidate.pieces,
            rewriter=self._rewriter,
            release=candidate.release,
        )
        self._rows[entry.name] = RecordEntry.of_sha256(entry.name, done.sha256, done.size)
        self._settled.append(settled)

    def _write_wheel_file(self, entry: ZipEntry, build_tag: str) -> None:
        data = self._artifact.read(entry.name)
        check_content(self._record.expected(entry.name), [data])
        self._add(NewMember.instead_of(entry), with_build_line(data, build_tag))
        self._progress(entry.compressed_size)

    def _add(self, member: NewMember, data: bytes) -> None:
        done = self._member_writer.add(member, len(data), [data])
        self._rows[member.name] = RecordEntry.of_sha256(member.name, done.sha256, done.size)

    def _copy(self, entry: ZipEntry) -> None:
        self._writer.copy(entry)
        if self._options.check_input:
            row = self._record.entries.get(entry.name)
            blocks = member_blocks(self._artifact.archive, entry)
            check = self._workers.deflate.submit(check_content, row, self._workers.checked(blocks))
            self._checks.append(check)

    def _finish(
        self, changed: tuple[ChangedMember, ...], dropped: dict[str, None], notices: tuple[str, ...]
    ) -> RewriteResult:
        """Write the stamp, RECORD and the central directory."""
        artifact = self._artifact
        before = sum(entry.size for entry in artifact.archive.entries)
        rewritten = {name: row.size or 0 for name, row in self._rows.items()}
        left_out = {*dropped, artifact.record_name, artifact.stamp_name}
        kept = [entry for entry in artifact.archive.entries if entry.name not in left_out]
        after = sum(rewritten.get(entry.name, entry.size) for entry in kept)
        result = RewriteResult(changed, tuple(dropped), before, after, notices)
        record_entry = artifact.entry(artifact.record_name)
        stamp = self._rewriter.stamp(result)
        self._add(NewMember.beside(record_entry, artifact.stamp_name), stamp)
        record = self._record.rewritten(self._rows, dropped)
        self._add(NewMember.instead_of(record_entry), record)
        order = []
        for entry in artifact.archive.entries:
            if entry.name == artifact.record_name and not artifact.has(artifact.stamp_name):
                order.append(artifact.stamp_name)
            if entry.name not in dropped:
                order.append(entry.name)
        self._writer.finish(order, artifact.archive.comment)
        self._progress(max(0, artifact.size - self._reported))
        return replace(result, installed_after=after + len(stamp) + len(record))
