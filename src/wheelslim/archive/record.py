"""RECORD, the list of a wheel's files with their hashes and sizes.

Format: PEP 376 as refined by the "Recording installed projects" and "Binary distribution format"
specifications: CSV rows of path, ``algorithm=urlsafe-base64-without-padding``, size.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ALGORITHMS = ("sha256", "sha384", "sha512")
"""What the specification allows ("sha256 or better") and every Python has."""

_WRITE_AGAIN = "Pack the wheel again (python -m wheel pack writes a correct RECORD)"


class RecordEntry(NamedTuple):
    """One row: ``digest`` and ``size`` (bytes) are None where the row leaves them empty."""

    path: str
    algorithm: str | None
    digest: bytes | None
    size: int | None

    @classmethod
    def parse(cls, fields: list[str], place: Place | None = None) -> RecordEntry:
        """Read the fields of one row.

        Raises:
            ArchiveError: not three fields, an empty path, or a hash or size that does not parse.
        """
        if len(fields) != 3 or not fields[0]:
            raise _bad_row("a row does not have a path, a hash and a size", fields, place)
        path, hash_text, size_text = fields
        algorithm = digest = size = None
        if hash_text:
            algorithm, _, encoded = hash_text.partition("=")
            try:
                digest = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
            except ValueError as error:
                raise _bad_row("a row's hash does not parse", fields, place) from error
            if not digest:
                raise _bad_row("a row's hash does not parse", fields, place)
        if size_text:
            if not (size_text.isascii() and size_text.isdigit()):
                raise _bad_row("a row's size does not parse", fields, place)
            size = int(size_text)
        return cls(path, algorithm, digest, size)

    @classmethod
    def of_sha256(cls, path: str, sha256: str, size: int) -> RecordEntry:
        """Describe a file by its SHA-256 (hex) and its size (bytes)."""
        return cls(path, "sha256", bytes.fromhex(sha256), size)

    def to_row(self, line_end: str = "\n") -> str:
        """Return the row as text, quoted where CSV needs it."""
        digest = ""
        if self.digest is not None:
            digest = f"{self.algorithm}={base64.urlsafe_b64encode(self.digest).decode().rstrip('=')}"
        out = io.StringIO()
        size = "" if self.size is None else str(self.size)
        csv.writer(out, lineterminator=line_end).writerow((self.path, digest, size))
        return out.getvalue()


def _bad_row(what: str, fields: list[str], place: Place | None) -> ArchiveError:
    return ArchiveError(
        what,
        place=place,
        expected="path,sha256=…,size",
        found=repr(",".join(fields)),
        hint=_WRITE_AGAIN,
    )


@dataclass(frozen=True, slots=True)
class Record:
    """A whole RECORD: ``entries`` by path, in order, and ``rows``, the text of each with its line end."""

    path: str
    entries: Mapping[str, RecordEntry]
    rows: Mapping[str, str]
    line_end: str

    @classmethod
    def parse(cls, data: bytes, path: str) -> Record:
        """Read RECORD, which is the member ``path``.

        Raises:
            ArchiveError: no UTF-8, a row that does not parse, or two rows of one path.
        """
        place = Place(member=path)
        try:
            lines = list(io.StringIO(data.decode("utf-8"), newline=""))
        except UnicodeDecodeError as error:
            raise ArchiveError("RECORD is not UTF-8", place=place, hint=_WRITE_AGAIN) from error
        reader = csv.reader(lines)
        entries: dict[str, RecordEntry] = {}
        rows: dict[str, str] = {}
        taken = 0
        try:
            for fields in reader:
                text = "".join(lines[taken : reader.line_num])
                taken = reader.line_num
                if not fields:
                    continue
                entry = RecordEntry.parse(fields, place)
                if entry.path in entries:
                    raise _bad_row("two rows have the same path", fields, place)
                entries[entry.path] = entry
                rows[entry.path] = text
        except csv.Error as error:
            raise ArchiveError("RECORD is no CSV", place=place, found=str(error)) from error
        return cls(path, entries, rows, "\r\n" if lines and lines[0].endswith("\r\n") else "\n")

    def check_lists(self, members: Iterable[str], exempt: Collection[str]) -> None:
        """Make sure that every one of ``members`` has a row, those in ``exempt`` excepted.

        Raises:
            ArchiveError: one has none.
        """
        missing = [name for name in members if name not in self.entries and name not in exempt]
        if missing:
            raise ArchiveError(
                "RECORD does not list a member of the wheel",
                place=Place(member=self.path),
                expected=f"a row for {missing[0]}",
                found=f"without a row: {len(missing):,}",
                hint=_WRITE_AGAIN,
            )

    def expected(self, path: str) -> RecordEntry:
        """Return the row of a member that has to carry a hash.

        Raises:
            ArchiveError: it has none.
        """
        entry = self.entries[path]
        if entry.digest is None:
            raise _no_hash(entry)
        return entry

    def rewritten(self, changed: Mapping[str, RecordEntry], dropped: Collection[str]) -> bytes:
        """Return the new RECORD: ``changed`` rows replaced or added, ``dropped`` ones left out.

        All other rows keep their bytes and their place; added ones come before RECORD's own.
        """
        added = "".join(
            entry.to_row(self.line_end) for path, entry in changed.items() if path not in self.entries
        )
        parts = []
        for path, text in self.rows.items():
            if path in dropped:
                continue
            if path == self.path:
                parts.append(added)
                added = ""
            parts.append(changed[path].to_row(self.line_end) if path in changed else text)
        # The last row may lack its line end: nothing may be joined to it.
        if added and parts and not parts[-1].endswith(("\n", "\r")):
            parts[-1] += self.line_end
        return ("".join(parts) + added).encode("utf-8")


def _no_hash(entry: RecordEntry) -> ArchiveError:
    return ArchiveError(
        "RECORD has no usable hash of a member",
        place=Place(member=entry.path),
        expected=" or ".join(ALGORITHMS),
        found=entry.algorithm or "none",
        hint=_WRITE_AGAIN,
    )


def check_content(entry: RecordEntry | None, blocks: Iterable[bytes]) -> str:
    """Compare a member's content with its row, if it has one; returns the SHA-256 (hex).

    Raises:
        ArchiveError: another hash or size, or a hash of another algorithm than SHA-2.
    """
    algorithm = entry.algorithm if entry is not None and entry.digest is not None else None
    if entry is not None and algorithm not in (None, *ALGORITHMS):
        raise _no_hash(entry)
    sha256 = hashlib.sha256()
    other = hashlib.new(algorithm) if algorithm not in (None, "sha256") else None
    size = 0
    for block in blocks:
        size += len(block)
        sha256.update(block)
        if other is not None:
            other.update(block)
    if entry is not None:
        compare(entry, (other or sha256).digest(), size)
    return sha256.hexdigest()


def compare(entry: RecordEntry, digest: bytes, size: int) -> None:
    """Compare a member's hash, by the algorithm of its row, and its size in bytes with the row.

    Raises:
        ArchiveError: they differ.
    """
    if entry.size is not None and entry.size != size:
        raise ArchiveError(
            "a member does not have the size that RECORD states",
            place=Place(member=entry.path),
            expected=f"{entry.size} bytes",
            found=f"{size} bytes",
            hint=_WRITE_AGAIN,
        )
    if entry.digest is not None and entry.digest != digest:
        raise ArchiveError(
            "a member does not have the hash that RECORD states",
            place=Place(member=entry.path),
            expected=entry.digest.hex(),
            found=digest.hex(),
            hint="Download the wheel again: somebody changed it, or it is damaged",
        )
