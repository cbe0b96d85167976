"""Proof that a written wheel differs from its original only where it should.

Reads the result with the standard library (zipfile, zlib, csv) and shares nothing with the writer.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import struct
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_errors
from wheelslim.errors import ArtifactError, Place, VerifyError
from wheelslim.source import BLOCK, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set
    from pathlib import Path

    from wheelslim.archive.wheel import WheelArtifact
    from wheelslim.archive.zip_reader import ZipEntry
    from wheelslim.rewriter import ChangedMember

_LOCAL = struct.Struct("<4s2x2H4x3I2H")
"""Signature, flags, method, CRC, compressed size, size, and lengths of name and extra fields."""

_WIDE = 0xFFFFFFFF
_REPORT = "This is a fault of wheelslim or of the disk: please report it; the output was not kept"


def verify_wheel_container(
    original: WheelArtifact,
    written: Path,
    changed: Set[str],
    dropped: Set[str],
    added: Set[str],
    *,
    read_back: Iterable[ChangedMember] = (),
) -> None:
    """Check the wheel ``written`` against ``original``.

    ``changed`` are members with new content; ``dropped`` are gone; ``added`` are new, or replaced
    whole. RECORD and WHEEL may differ as far as these demand. All else has to be the same: order,
    dates, attributes, and every byte of the unchanged members. What is known of those in
    ``read_back``, which were read from ``written`` already, is compared with RECORD and the headers
    instead of inflating them again.

    Raises:
        VerifyError: something else differs, or a rewritten member does not match its CRC or RECORD.
        StorageError: the operating system refuses.
    """
    try:
        with storage_errors(written), zipfile.ZipFile(written) as archive:
            if archive.fp is None:  # closed; cannot be, but the types allow it
                raise zipfile.BadZipFile
            source = Source.of_file(archive.fp.fileno())
            known = {one.name: one for one in read_back if one.read_back_at is not None}
            check = _Check(original, archive, source, dropped=set(dropped), added=set(added), known=known)
            check.directory(set(changed))
            with ThreadPoolExecutor(min(2, os.cpu_count() or 1), "verify") as pool:
                same = pool.submit(check.unchanged_bytes)
                check.record()
                same.result()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, ArtifactError) as error:
        raise VerifyError(
            "the written wheel is no sound zip file",
            place=Place(artifact=str(written)),
            found=str(error),
            hint=_REPORT,
        ) from error
    except VerifyError as error:
        raise error.at(artifact=str(written)) from error.__cause__


class _Check:
    """One comparison: the parts that its steps share."""

    def __init__(
        self,
        original: WheelArtifact,
        archive: zipfile.ZipFile,
        source: Source,
        *,
        dropped: set[str],
        added: set[str],
        known: dict[str, ChangedMember],
    ) -> None:
        self._original = original
        self._archive = archive
        self._source = source
        self._dropped = dropped
        self._added = added
        self._known = known
        self._infos = {info.filename: info for info in archive.infolist()}
        self._rewritten: set[str] = set()

    def directory(self, changed: set[str]) -> None:
        """Compare names, order, dates and attributes; find out what was rewritten."""
        original = self._original
        names = [info.filename for info in self._archive.infolist()]
        entries = {entry.name: entry for entry in original.archive.entries}
        kept = [name for name in entries if name not in self._dropped]
        _same("the list of members", None, kept, [name for name in names if name in entries])
        strangers = {name for name in names if name not in entries}
        _same("the added members", None, {name for name in self._added if name not in entries}, strangers)
        _same("the number of members", None, len(set(names)), len(names))
        own = {original.record_name, original.wheel_file_name}
        self._rewritten = changed | self._added | own
        for name in kept:
            entry, info = entries[name], self._infos[name]
            facts = (info.create_system, info.date_time, info.external_attr, info.internal_attr, info.comment)
            expected = (
                entry.made_by >> 8, _date_time(entry), entry.external_attributes,
                entry.internal_attributes, entry.comment,
            )  # fmt: skip
            if name not in self._added:
                _same("a member's date or attributes", name, expected, facts)
            if name not in self._rewritten:
                _same(
                    "an unchanged member's method, flags, CRC or sizes",
                    name,
                    (entry.method, entry.flags, entry.crc, entry.compressed_size, entry.size),
                    (info.compress_type, info.flag_bits, info.CRC, info.compress_size, info.file_size),
                )

    def unchanged_bytes(self) -> None:
        """Compare the bytes of all unchanged members, local headers included, in long runs."""
        before = self._original.archive.source
        for start, other, size in self._runs():
            done = 0
            while done < size:
                step = min(BLOCK, size - done)
                if before.read(start + done, step) != self._source.read(other + done, step):
                    raise VerifyError(
                        "unchanged members are not the same bytes",
                        place=Place(offset=other + done),
                        expected=f"the {step} bytes at {start + done:#x} of the original",
                        hint=_REPORT,
                    )
                done += step

    def _runs(self) -> Iterator[tuple[int, int, int]]:
        """Yield (offset in the original, offset in the result, size) of neighbours among the unchanged."""
        start = other = size = 0
        for entry in sorted(self._original.archive.entries, key=lambda entry: entry.header_offset):
            if entry.name in self._rewritten or entry.name in self._dropped:
                continue
            offset = self._infos[entry.name].header_offset
            if (entry.header_offset, offset) != (start + size, other + size):
                yield start, other, size
                start, other, size = entry.header_offset, offset, 0
            size = entry.end_offset - start
        yield start, other, size

    def record(self) -> None:
        """Check that RECORD is true for what was rewritten and the same for all else."""
        original = self._original
        before = _rows(original.read(original.record_name))
        after = _rows(b"".join(self._content(original.record_name)))
        kept = [row for row in before if row[0] not in self._dropped]
        expected_order = [row[0] for row in kept if row[0] not in self._added]
        _same(
            "the order of RECORD",
            original.record_name,
            expected_order,
            [row[0] for row in after if row[0] not in self._added],
        )
        rows = {row[0]: row for row in after}
        listed = [name for name in self._infos if not name.endswith("/")]
        _same("RECORD's list", original.record_name, [], [name for name in listed if name not in rows])
        unchanged = [row for row in kept if row[0] not in self._rewritten]
        if unchanged != [rows[row[0]] for row in unchanged]:
            for row in unchanged:
                _same("a row of RECORD", row[0], row, rows[row[0]])
        for name in sorted(self._rewritten):
            if name == original.record_name:
                continue
            sha256, size = self._identity(name)
            hashed = "sha256=" + base64.urlsafe_b64encode(sha256).decode().rstrip("=")
            if rows[name][1].startswith("sha256="):  # WHEEL, where it kept its row, may have another.
                _same("the row of a rewritten member in RECORD", name, [name, hashed, str(size)], rows[name])

    def _identity(self, name: str) -> tuple[bytes, int]:
        """Return the SHA-256 and the size of a rewritten member."""
        known = self._known.get(name)
        if known is not None:
            info = self._infos[name]
            _same("a member's place", name, known.read_back_at, self._data_start(info))
            _same("a member's size", name, known.size_after, info.file_size)
            return bytes.fromhex(known.sha256_after), known.size_after
        digest = hashlib.sha256()
        size = 0
        for block in self._content(name):
            digest.update(block)
            size += len(block)
        return digest.digest(), size

    def _data_start(self, info: zipfile.ZipInfo) -> int:
        """Return where a member's data begin; its local header has to agree with the directory."""
        header = self._source.read(info.header_offset, _LOCAL.size)
        signature, flags, method, crc, compressed, size, names, extra = _LOCAL.unpack(header)
        expected = (b"PK\x03\x04", info.flag_bits, info.compress_type, info.CRC)
        _same("a local header", info.filename, expected, (signature, flags, method, crc))
        if _WIDE not in (compressed, size):
            sizes = (info.compress_size, info.file_size)
            _same("a local header's sizes", info.filename, sizes, (compressed, size))
        return info.header_offset + _LOCAL.size + int(names) + int(extra)

    def _content(self, name: str) -> Iterator[bytes]:
        """Yield a member's content, checked against its sizes and CRC."""
        info = self._infos[name]
        start = self._data_start(info)
        crc = size = 0
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        deflated = info.compress_type == zipfile.ZIP_DEFLATED
        try:
            for block in self._source.blocks(start, info.compress_size, BLOCK >> 2):
                data = inflater.decompress(block) if deflated else block
                crc = zlib.crc32(data, crc)
                size += len(data)
                yield data
        except zlib.error as error:
            raise VerifyError(
                "a written member does not inflate", place=Place(member=name), found=str(error), hint=_REPORT
            ) from error
        _same("a member's CRC and size", name, (info.CRC, info.file_size), (crc, size))
        if deflated:
            _same("the end of a member's data", name, (True, b""), (inflater.eof, inflater.unused_data))


def _rows(data: bytes) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(data.decode("utf-8"), newline="")) if row]


def _date_time(entry: ZipEntry) -> tuple[int, int, int, int, int, int]:
    date, time = entry.date, entry.time
    return (
        (date >> 9) + 1980, date >> 5 & 15, date & 31,
        time >> 11, time >> 5 & 63, (time & 31) * 2,
    )  # fmt: skip


def _same(what: str, member: str | None, expected: object, found: object) -> None:
    if expected != found:
        raise VerifyError(
            f"{what} differs from what it should be",
            place=Place(member=member),
            expected=_short(expected),
            found=_short(found),
            hint=_REPORT,
        )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
