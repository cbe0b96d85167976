"""``info/paths.json``: what a conda client checks, links and rewrites when it installs a package.

Format: CEP 34 (``paths_version`` 1). Each entry names a path, its type, and, for files, SHA-256 and
size; a file that holds the build prefix has ``prefix_placeholder`` and ``file_mode``, and a client
overwrites the placeholder, at its length, in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wheelslim.archive.artifact import MemberType
from wheelslim.archive.json_style import JsonStyle, read_json
from wheelslim.archive.tar_header import plain_name
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

PATHS_JSON = "info/paths.json"
_VERSION = 1
_HARDLINK = "hardlink"
_SOFTLINK = "softlink"
_DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class Content:
    """What a name of the package holds: its type, and for files (hard links too) hash and size."""

    type: MemberType
    sha256: str = ""
    size: int = 0


@dataclass(frozen=True)
class Disagreement:
    """One way in which paths.json and the package differ."""

    path: str
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        """Say it in one clause."""
        return f"{self.path}: {self.what} (expected {self.expected}, found {self.found})"


@dataclass(frozen=True)
class PathsJson:
    """The parsed document; ``entries`` maps each path to its JSON object."""

    document: dict[str, Any]
    style: JsonStyle
    entries: dict[str, dict[str, Any]] = field(repr=False)

    @classmethod
    def parse(cls, data: bytes) -> PathsJson:
        """Read the document.

        Raises:
            ArchiveError: it does not parse, is of another version, or names a path twice.
        """
        document, style = read_json(data, PATHS_JSON)
        place = Place(member=PATHS_JSON)
        version = document.get("paths_version") if isinstance(document, dict) else None
        if version != _VERSION:
            raise ArchiveError(
                "the version is not supported", place=place, expected=str(_VERSION), found=repr(version)
            )
        listed = document.get("paths")
        if not isinstance(listed, list):
            raise ArchiveError("there is no list of paths", place=place)
        entries: dict[str, dict[str, Any]] = {}
        for entry in listed:
            path = entry.get("_path") if isinstance(entry, dict) else None
            if not isinstance(path, str):
                raise ArchiveError("an entry has no path", place=place, found=repr(entry)[:80])
            name = plain_name(path)
            if name in entries:
                raise ArchiveError("a path is listed twice", place=place, found=repr(path))
            entries[name] = entry
        return cls(document, style, entries)

    def placeholder(self, name: str) -> bytes | None:
        """Return the build prefix that clients replace in the file ``name``, if any."""
        value = self.entries.get(name, {}).get("prefix_placeholder")
        return value.encode("utf-8") if isinstance(value, str) and value else None

    def disagreements(self, contents: Mapping[str, Content]) -> Iterator[Disagreement]:
        """Yield how the entries and the package's members differ.

        Hashes of symbolic links are not judged: tools differ in what they write there, and clients
        do not look.
        """
        for name, entry in self.entries.items():
            content = contents.get(name)
            kind = entry.get("path_type", _HARDLINK)
            if content is None:
                if kind != _DIRECTORY:
                    yield Disagreement(name, "listed, but not in the package", kind, "nothing")
            elif kind != (actual := _path_type(content)):
                yield Disagreement(name, "of another type", kind, actual)
            elif kind == _HARDLINK:
                size, digest = entry.get("size_in_bytes"), entry.get("sha256")
                if size is not None and size != content.size:
                    yield Disagreement(name, "of another size", f"{size} bytes", f"{content.size} bytes")
                elif digest is not None and str(digest).lower() != content.sha256:
                    yield Disagreement(name, "of another SHA-256", str(digest), content.sha256)
        for name, content in contents.items():
            if name not in self.entries and content.type is not MemberType.DIRECTORY:
                yield Disagreement(name, "in the package, but not listed", "an entry", "none")

    def repaired(self, contents: Mapping[str, Content]) -> PathsJson:
        """Return a document that agrees with the members: hashes, sizes, types and paths."""
        entries: dict[str, dict[str, Any]] = {}
        for name, entry in self.entries.items():
            content = contents.get(name)
            if content is None:
                if entry.get("path_type") == _DIRECTORY:
                    entries[name] = entry
                continue
            kind = _path_type(content)
            mended = entry | {"path_type": kind}
            if kind == _HARDLINK:
                mended |= {"sha256": content.sha256, "size_in_bytes": content.size}
            entries[name] = mended if mended != entry else entry
        for name, content in contents.items():
            if name not in entries and content.type is not MemberType.DIRECTORY:
                kind = _path_type(content)
                entries[name] = {"_path": name, "path_type": kind}
                if kind == _HARDLINK:
                    entries[name] |= {"sha256": content.sha256, "size_in_bytes": content.size}
        return self._with(entries)

    def updated(self, changed: Mapping[str, tuple[Content, Content]], dropped: Collection[str]) -> PathsJson:
        """Return the document after ``changed`` (name: before, after) and without ``dropped``.

        A symbolic link is named in ``changed`` with the contents of the file it leads to, since
        conda-build writes the hash of that file. ``sha256_in_prefix`` follows where it was the hash
        of the file as packed; where it was that of a file with another prefix in place, it cannot
        be known and goes.
        """
        entries: dict[str, dict[str, Any]] = {}
        for name, entry in self.entries.items():
            if name in dropped:
                continue
            pair = changed.get(name)
            entries[name] = entry if pair is None else _changed(entry, *pair)
        return self._with(entries)

    def write(self) -> bytes:
        """Return the document in the style it was read in."""
        return self.style.write(self.document)

    def _with(self, entries: dict[str, dict[str, Any]]) -> PathsJson:
        return PathsJson(self.document | {"paths": list(entries.values())}, self.style, entries)


def _changed(entry: dict[str, Any], before: Content, after: Content) -> dict[str, Any]:
    new = dict(entry)
    is_link = entry.get("path_type") == _SOFTLINK
    for key, old, value in (
        ("sha256", before.sha256, after.sha256),
        ("size_in_bytes", before.size, after.size),
    ):
        # A link's own facts may be those of its target, or not: what did not match stays.
        if key in entry and not (is_link and entry[key] != old):
            new[key] = value
    if "sha256_in_prefix" in entry:
        if entry["sha256_in_prefix"] == before.sha256:
            new["sha256_in_prefix"] = after.sha256
        elif not is_link:
            del new["sha256_in_prefix"]
    return new


def _path_type(content: Content) -> str:
    if content.type is MemberType.SYMLINK:
        return _SOFTLINK
    return _DIRECTORY if content.type is MemberType.DIRECTORY else _HARDLINK
