"""A static package index beside the wheels.

Format: the simple repository API of packaging.python.org: HTML (PEP 503) with metadata files beside the
wheels (PEP 658, PEP 714), and the same as JSON (PEP 691, PEP 700) for servers that negotiate.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wheelslim.archive.output import atomic_output
from wheelslim.archive.wheel import WheelArtifact
from wheelslim.wheelhouse.lock import write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from wheelslim.wheelhouse.lock import LockedWheel

SIMPLE = "simple"
METADATA = ".metadata"
_META = {"api-version": "1.1"}


@dataclass(frozen=True)
class IndexedWheel:
    """A wheel as the index lists it; ``metadata_sha256`` is that of its METADATA."""

    wheel: LockedWheel
    project: str
    metadata_sha256: str
    requires_python: str | None

    @property
    def url(self) -> str:
        """The wheel's place from the page of its project."""
        return f"../../{quote(self.wheel.file)}"

    @property
    def html(self) -> str:
        """The anchor of PEP 503."""
        hashes = f"sha256={self.metadata_sha256}"
        attributes = f'data-core-metadata="{hashes}" data-dist-info-metadata="{hashes}"'
        if self.requires_python is not None:
            attributes += f' data-requires-python="{escape(self.requires_python)}"'
        address = escape(f"{self.url}#sha256={self.wheel.sha256}")
        return f'<a href="{address}" {attributes}>{escape(self.wheel.file)}</a><br>'

    @property
    def json(self) -> dict[str, Any]:
        """The object of PEP 691."""
        found: dict[str, Any] = {
            "filename": self.wheel.file,
            "url": self.url,
            "hashes": {"sha256": self.wheel.sha256},
            "size": self.wheel.size,
            "core-metadata": {"sha256": self.metadata_sha256},
        }
        if self.requires_python is not None:
            found["requires-python"] = self.requires_python
        return found


def write_index(directory: Path, wheels: Sequence[LockedWheel]) -> None:
    """Write the pages of all projects, and METADATA of every wheel beside it.

    Raises:
        ArchiveError: a wheel does not read.
        StorageError: the operating system refuses.
    """
    projects: dict[str, list[IndexedWheel]] = {}
    for wheel in wheels:
        indexed = _indexed(directory, wheel)
        projects.setdefault(indexed.project, []).append(indexed)
    simple = directory / SIMPLE
    for project, listed in projects.items():
        title = f"Links for {project}"
        write_text(simple / project / "index.html", _page(title, (one.html for one in listed)))
        versions = list(dict.fromkeys(one.wheel.version for one in listed))
        document = {
            "meta": _META,
            "name": project,
            "versions": versions,
            "files": [one.json for one in listed],
        }
        write_text(simple / project / "index.json", json.dumps(document, indent=1) + "\n")
    links = (f'<a href="{escape(project)}/">{escape(project)}</a><br>' for project in projects)
    write_text(simple / "index.html", _page("Simple index", links))
    named = {"meta": _META, "projects": [{"name": project} for project in projects]}
    write_text(simple / "index.json", json.dumps(named, indent=1) + "\n")


def _indexed(directory: Path, wheel: LockedWheel) -> IndexedWheel:
    from packaging.utils import canonicalize_name

    with WheelArtifact(directory / wheel.file) as artifact:
        metadata = artifact.read(f"{artifact.dist_info}/METADATA")
    beside = directory / f"{wheel.file}{METADATA}"
    if not beside.exists() or beside.read_bytes() != metadata:
        with atomic_output(beside, force=True) as temporary:
            temporary.write_bytes(metadata)
    return IndexedWheel(
        wheel=wheel,
        project=canonicalize_name(wheel.name),
        metadata_sha256=hashlib.sha256(metadata).hexdigest(),
        requires_python=BytesHeaderParser().parsebytes(metadata).get("Requires-Python"),
    )


def _page(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    return f"""<!DOCTYPE html>
<html><head><meta charset="utf-8"><meta name="pypi:repository-version" content="1.1">
<title>{escape(title)}</title></head>
<body>
<h1>{escape(title)}</h1>
{body}
</body></html>
"""
