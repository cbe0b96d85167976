"""A package in a conda prefix: its file in ``conda-meta``.

Format: the prefix records that conda, mamba and rattler write: ``files`` lists every path,
``paths_data.paths`` has one object per path like those of ``info/paths.json`` (CEP 34) plus
``sha256_in_prefix``, the hash of the file as it was linked, which ``conda doctor`` compares; rattler
writes that only where it differs from ``sha256``.
The top-level ``sha256``, ``md5`` and ``size`` are those of the package's archive and stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wheelslim.archive.json_style import JsonStyle, read_json
from wheelslim.environment.book_file import read_book
from wheelslim.environment.replacement import check_writable, replace_text
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from wheelslim.rewriter import ChangedMember

CONDA_META = "conda-meta"


@dataclass(frozen=True)
class CondaPackage:
    """A JSON file of ``conda-meta``; paths in it count from the prefix."""

    place: Path

    @property
    def label(self) -> str:
        """Name, version and build as the file name spells them."""
        return self.place.name.removesuffix(".json")

    @property
    def name(self) -> str:
        """The package's name."""
        return self.label.rsplit("-", 2)[0].lower()

    @property
    def base(self) -> Path:
        """Where paths count from: the prefix."""
        return self.place.parent.parent

    def check_writable(self) -> None:
        """Make sure that the file can be replaced.

        Raises:
            StorageError: it cannot.
        """
        check_writable(self.place.parent)

    def listed(self) -> Iterable[str]:
        """Return all paths.

        Raises:
            ArchiveError: the file does not parse.
            StorageError: the operating system refuses.
        """
        document, _ = self._read()
        entries = (document.get("paths_data") or {}).get("paths") or ()
        paths = [*(document.get("files") or ()), *(entry["_path"] for entry in entries)]
        return list(dict.fromkeys(paths))

    def book(
        self,
        changed: Mapping[str, ChangedMember],
        added: Mapping[str, ChangedMember],
        dropped: Collection[str],
    ) -> None:
        """Bring the hashes, sizes and lists of paths up to date; doing it twice is doing it once.

        Raises:
            ArchiveError: the file does not parse.
            StorageError: the operating system refuses.
        """
        document, style = self._read()
        gone = set(dropped)
        files = [path for path in document.get("files") or () if path not in gone]
        files += [path for path in added if path not in files]
        new = document | ({"files": files} if files or document.get("files") else {})
        data = document.get("paths_data")
        if data and data.get("paths"):
            by_hash = {change.sha256_before: change for change in changed.values()}
            entries = [
                _updated(entry, changed, by_hash) for entry in data["paths"] if entry["_path"] not in gone
            ]
            known = {entry["_path"] for entry in entries}
            entries += [_entry(path, change) for path, change in added.items() if path not in known]
            new["paths_data"] = data | {"paths": entries}
        if new != document:
            replace_text(self.place, style.write(new))

    def _read(self) -> tuple[dict[str, Any], JsonStyle]:
        document, style = read_json(read_book(self.place), str(self.place))
        if not _is_record(document):
            raise ArchiveError("this is no record of a package", place=Place(artifact=str(self.place)))
        return document, style


def _is_record(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Whether the parts that list files have the shape that clients write; they may be missing."""
    if not isinstance(document, dict):
        return False
    files, data = document.get("files"), document.get("paths_data")
    if not (data is None or isinstance(data, dict)):
        return False
    entries = data.get("paths") if data else None
    return _is_list_of(str, files) and (
        _is_list_of(dict, entries) and all(isinstance(entry.get("_path"), str) for entry in entries or ())
    )


def _is_list_of(kind: type, value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return value is None or (isinstance(value, list) and all(isinstance(item, kind) for item in value))


def _entry(path: str, change: ChangedMember) -> dict[str, Any]:
    return {
        "_path": path,
        "path_type": "hardlink",
        "sha256": change.sha256_after,
        "sha256_in_prefix": change.sha256_after,
        "size_in_bytes": change.size_after,
    }


def _updated(
    entry: dict[str, Any], changed: Mapping[str, ChangedMember], by_hash: Mapping[str, ChangedMember]
) -> dict[str, Any]:
    """Let an entry say the new facts.

    Where clients put the prefix into a file, ``sha256`` is that of the file as packed, and stays.
    """
    if entry.get("path_type") == "softlink":
        return _updated_link(entry, by_hash)
    change = changed.get(str(entry.get("_path")))
    if change is None:
        return entry
    new = dict(entry)
    if "sha256" in entry and not entry.get("prefix_placeholder"):
        new["sha256"] = change.sha256_after
    if "sha256_in_prefix" in entry or entry.get("prefix_placeholder"):
        new["sha256_in_prefix"] = change.sha256_after
    if "size_in_bytes" in entry:
        new["size_in_bytes"] = change.size_after
    return new


def _updated_link(entry: dict[str, Any], by_hash: Mapping[str, ChangedMember]) -> dict[str, Any]:
    """Let a symbolic link follow the file it leads to, in those hashes that are that file's.

    conda writes the file's hash into both; rattler puts the hash of the link's text into the second.
    """
    new = dict(entry)
    for key in ("sha256", "sha256_in_prefix"):
        change = by_hash.get(str(entry.get(key)))
        if change is not None:
            new[key] = change.sha256_after
            if entry.get("size_in_bytes") == change.size_before:
                new["size_in_bytes"] = change.size_after
    return new
