"""A package's record in the ``conda-meta`` of a prefix, original against slimmed."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Any

from wheelslim.errors import Place, VerifyError
from wheelslim.units import count_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wheelslim.proof.books import Digest

_FACTS = ("sha256", "sha256_in_prefix", "size_in_bytes")


def is_conda_record(name: str) -> bool:
    """Whether a file of a tree is such a record."""
    directory, _, file = name.rpartition("/")
    return file.endswith(".json") and posixpath.basename(directory) == "conda-meta"


def prove_conda_record(
    name: str,
    before: bytes,
    after: bytes,
    *,
    changed: Mapping[str, Digest],
    dropped: Collection[str],
    added: Collection[str],
) -> int:
    """Prove that the record is true for what changed and the same for all else; returns its paths.

    ``changed``, ``dropped`` and ``added`` name files of the tree.

    Raises:
        VerifyError: it does not parse, or something is wrong, missing or new.
    """
    old, new = _document(name, before), _document(name, after)
    prefix = posixpath.dirname(posixpath.dirname(name))

    def member(path: str) -> str:
        return posixpath.join(prefix, path)

    for key in sorted({*old, *new} - {"files", "paths_data"}):
        if old.get(key) != new.get(key):
            raise _fault(name, f"{key!r} differs", old.get(key), new.get(key))
    kept = [path for path in old.get("files", ()) if member(path) not in dropped]
    listed = [path for path in new.get("files", ()) if path in kept or member(path) not in added]
    if kept != listed:
        raise _fault(name, "the list of files differs", count_text(len(kept), "file"), f"{len(listed):,}")
    entries = {str(entry.get("_path")): entry for entry in _entries(old)}
    found = {str(entry.get("_path")): entry for entry in _entries(new)}
    for path, entry in found.items():
        digest = changed.get(member(path))
        if digest is not None and entry.get("path_type") != "softlink":
            _check_facts(name, path, entry, digest)
        if path not in entries:
            if member(path) not in added:
                raise _fault(name, f"the path {path} is new")
        elif _other(entries[path]) != _other(entry):
            raise _fault(name, f"the path {path} differs", _other(entries[path]), _other(entry))
        elif digest is None and entries[path] != entry and not _follows(entry, changed.values()):
            raise _fault(name, f"the path {path} differs", entries[path], entry)
    for path in entries:
        if path not in found and member(path) not in dropped:
            raise _fault(name, f"the path {path} is gone")
    return len(found)


def _document(name: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise VerifyError("the package's record does not parse", place=Place(member=name)) from error
    if not isinstance(value, dict):
        raise VerifyError("the package's record holds no object", place=Place(member=name))
    return value


def _entries(document: dict[str, Any]) -> list[dict[str, Any]]:
    data = document.get("paths_data")
    paths = data.get("paths") if isinstance(data, dict) else None
    return [entry for entry in paths if isinstance(entry, dict)] if isinstance(paths, list) else []


def _other(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in _FACTS}


def _check_facts(name: str, path: str, entry: dict[str, Any], digest: Digest) -> None:
    """The hash in the prefix and the size are those of the file as it is now."""
    hash_key = "sha256_in_prefix" if "sha256_in_prefix" in entry else "sha256"
    if entry.get(hash_key) not in (None, digest.sha256):
        raise _fault(name, f"the path {path} has the wrong hash", digest.sha256, entry[hash_key])
    if entry.get("size_in_bytes") not in (None, digest.size):
        raise _fault(name, f"the path {path} has the wrong size", digest.size, entry["size_in_bytes"])


def _follows(entry: dict[str, Any], digests: Collection[Digest]) -> bool:
    """Whether an entry of a link says the facts of a file that changed."""
    if entry.get("path_type") != "softlink":
        return False
    return any(digest.sha256 in (entry.get(key) for key in _FACTS) for digest in digests)


def _fault(name: str, what: str, expected: object = None, found: object = None) -> VerifyError:
    return VerifyError(
        what,
        place=Place(member=name),
        expected=None if expected is None else str(expected),
        found=None if found is None else str(found),
    )
