"""The books of an artifact, original against slimmed: RECORD, WHEEL, paths.json, index.json."""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wheelslim.archive.artifact import MemberType
from wheelslim.archive.paths_json import PATHS_JSON, Content, PathsJson
from wheelslim.archive.record import Record
from wheelslim.errors import Place, VerifyError, WheelslimError
from wheelslim.proof.conda_record import is_conda_record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wheelslim.archive.record import RecordEntry

INDEX_JSON = "info/index.json"
FILES = "info/files"
_BUILD_KEYS = frozenset({"build", "build_number"})
_RECORD_SUFFIX = ".dist-info/RECORD"
_WHEEL_SUFFIX = ".dist-info/WHEEL"


@dataclass(frozen=True, slots=True)
class Digest:
    """What a member of the slimmed artifact holds: SHA-256 in hex, size in bytes."""

    sha256: str
    size: int


def is_record(name: str) -> bool:
    """Whether a member is the RECORD of a distribution."""
    return name.endswith(_RECORD_SUFFIX)


def is_book(name: str) -> bool:
    """Whether a member is compared here and not byte by byte."""
    if name.endswith((_RECORD_SUFFIX, _WHEEL_SUFFIX)) or name in (PATHS_JSON, INDEX_JSON, FILES):
        return True
    return is_conda_record(name)


def prove_record(
    name: str, before: bytes, after: bytes, changed: Mapping[str, Digest], dropped: Collection[str]
) -> int:
    """Prove that RECORD is true for what changed and the same for all else; returns the rows compared.

    ``changed`` and ``dropped`` name members of the artifact, added ones among the changed.

    Raises:
        VerifyError: a row is wrong, missing, new or in another place.
    """
    old, new = _parsed(name, before, "original"), _parsed(name, after, "slimmed")
    site = posixpath.dirname(posixpath.dirname(name))

    def member(path: str) -> str:
        return posixpath.normpath(posixpath.join(site, path))

    offsets = _offsets(new)
    kept = [path for path in old.rows if member(path) not in dropped]
    common = [path for path in new.rows if path in old.rows]
    for expected, found in zip(kept, common, strict=False):
        if expected != found:
            raise _fault(name, offsets[found], "the rows are in another order", expected, found)
    if len(kept) != len(common):
        odd = next(path for path in (*kept, *common) if path not in common or path not in kept)
        what = "a row is missing" if odd in kept else "a row of a dropped member is left"
        raise _fault(name, offsets.get(odd), f"{what}: {odd}")
    for path, row in new.rows.items():
        entry = new.entries[path]
        digest = changed.get(member(path))
        if path in old.rows and row.rstrip("\r\n") == old.rows[path].rstrip("\r\n"):
            if digest is not None and entry.digest is not None:
                _check_row(name, offsets[path], entry, digest)
        elif digest is None:
            what = "a row of an unchanged member differs" if path in old.rows else "a row is new"
            raise _fault(name, offsets[path], f"{what}: {path}", old.rows.get(path, "").strip(), row.strip())
        else:
            _check_row(name, offsets[path], entry, digest)
    unlisted = [path for path in changed if path not in {member(row) for row in new.rows}]
    if not site and unlisted:
        raise _fault(name, None, f"a member has no row: {unlisted[0]}")
    return len(new.rows)


def _parsed(name: str, data: bytes, which: str) -> Record:
    try:
        return Record.parse(data, name)
    except WheelslimError as error:
        raise VerifyError(f"RECORD of the {which} does not parse: {error.what}", place=error.place) from error


def _offsets(record: Record) -> dict[str, int]:
    offsets = {}
    position = 0
    for path, row in record.rows.items():
        offsets[path] = position
        position += len(row.encode())
    return offsets


def _check_row(name: str, offset: int, entry: RecordEntry, digest: Digest) -> None:
    if entry.size is not None and entry.size != digest.size:
        raise _fault(
            name, offset, f"the row of {entry.path} has the wrong size", str(digest.size), str(entry.size)
        )
    if entry.digest is not None and entry.algorithm == "sha256" and entry.digest.hex() != digest.sha256:
        raise _fault(
            name, offset, f"the row of {entry.path} has the wrong hash", digest.sha256, entry.digest.hex()
        )


def prove_wheel_file(name: str, before: bytes, after: bytes) -> None:
    """Prove that WHEEL differs in its ``Build:`` line at most.

    Raises:
        VerifyError: another line differs.
    """
    old, new = (
        [line for line in text.splitlines() if not line.startswith(b"Build:")] for text in (before, after)
    )
    if old != new:
        odd = next((b for a, b in zip(old, new, strict=False) if a != b), b"")
        raise VerifyError(
            "WHEEL differs in more than the build tag",
            place=Place(member=name, offset=max(0, after.find(odd))),
            found=odd.decode("utf-8", "backslashreplace"),
        )


def prove_index(before: bytes, after: bytes) -> None:
    """Prove that ``info/index.json`` differs in the build string at most.

    Raises:
        VerifyError: it does not parse, or another key differs.
    """
    old, new = _json_object(before), _json_object(after)
    for key in sorted({*old, *new} - _BUILD_KEYS):
        if old.get(key) != new.get(key):
            raise VerifyError(
                f"index.json differs in {key!r}",
                place=Place(member=INDEX_JSON),
                expected=repr(old.get(key)),
                found=repr(new.get(key)),
            )


def prove_files(before: bytes, after: bytes, dropped: Collection[str]) -> None:
    """Prove that ``info/files`` lists what it listed, without the dropped members.

    Raises:
        VerifyError: it does not.
    """
    names = set(dropped)
    old = [
        line for line in before.decode("utf-8", "surrogateescape").split("\n") if line.strip() not in names
    ]
    if old != after.decode("utf-8", "surrogateescape").split("\n"):
        raise VerifyError("info/files lists something else", place=Place(member=FILES))


def prove_paths(after: bytes, contents: Mapping[str, Content]) -> int:
    """Prove that ``info/paths.json`` agrees with the slimmed package; returns the paths compared.

    Raises:
        VerifyError: it does not parse, or disagrees.
    """
    try:
        paths = PathsJson.parse(after)
    except WheelslimError as error:
        raise VerifyError(f"paths.json does not parse: {error.what}", place=error.place) from error
    files = {name: content for name, content in contents.items() if not name.startswith("info/")}
    for disagreement in paths.disagreements(files):
        raise VerifyError(
            "paths.json does not agree", place=Place(member=PATHS_JSON), found=str(disagreement)
        )
    return len(paths.entries)


def content_of(digest: Digest) -> Content:
    """Describe a file as paths.json does."""
    return Content(MemberType.FILE, digest.sha256, digest.size)


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise VerifyError("index.json does not parse", place=Place(member=INDEX_JSON)) from error
    if not isinstance(value, dict):
        raise VerifyError("index.json holds no object", place=Place(member=INDEX_JSON))
    return value


def _fault(
    name: str, offset: int | None, what: str, expected: str | None = None, found: str | None = None
) -> VerifyError:
    return VerifyError(what, place=Place(member=name, offset=offset), expected=expected or None, found=found)
