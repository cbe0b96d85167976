"""The lock of a wheelhouse and its static index."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from packaging.requirements import Requirement

from builders.wheel import Wheel
from wheelslim.errors import ArchiveError
from wheelslim.wheelhouse.index import write_index
from wheelslim.wheelhouse.lock import LOCK, Lock, LockedWheel

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = {"targets": ["sm_86"], "ptx": "auto"}


class Anchors(HTMLParser):
    """The links of a page with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append({name: value or "" for name, value in attrs})


def anchors(page: Path) -> list[dict[str, str]]:
    parser = Anchors()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.found


def locked(
    directory: Path, name: str, metadata: str = "", build: str = "", tag: str = "py3-none-any"
) -> LockedWheel:
    path = Wheel({"m.py": b""}, name=name, tag=tag, metadata=metadata, build=build).write(directory)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return LockedWheel(name, "1.0", path.name, path.stat().st_size, digest, "source.whl", "5" * 64)


def test_a_lock_reads_back(tmp_path: Path) -> None:
    lock = Lock.of(REQUEST, [locked(tmp_path, "beta"), locked(tmp_path, "alpha")])
    lock.write(tmp_path)
    assert Lock.read(tmp_path) == lock
    assert [wheel.name for wheel in lock.wheels] == ["alpha", "beta"]


def test_there_is_no_lock_in_a_new_wheelhouse(tmp_path: Path) -> None:
    assert Lock.read(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": "wheelslim/wheelhouse/2"}',
        '{"schema": "wheelslim/wheelhouse/1", "request": {}, "wheels": [{}]}',
    ],
)
def test_a_lock_that_does_not_parse_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text)
    with pytest.raises(ArchiveError, match="does not parse"):
        Lock.read(tmp_path)


def test_a_lock_cannot_name_files_outside(tmp_path: Path) -> None:
    wheel = asdict(LockedWheel("x", "1", "../x.whl", 1, "", "", ""))
    (tmp_path / LOCK).write_text(
        json.dumps({"schema": "wheelslim/wheelhouse/1", "request": {}, "wheels": [wheel]})
    )
    with pytest.raises(ArchiveError):
        Lock.read(tmp_path)


def test_requirements_pin_version_and_hash(tmp_path: Path) -> None:
    wheel = locked(tmp_path, "demo")
    text = Lock.of(REQUEST, [wheel]).requirements()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == ["demo==1.0 \\", f"    --hash=sha256:{wheel.sha256}"]
    assert str(Requirement(lines[0].removesuffix(" \\"))) == "demo==1.0"
    assert f"# from source.whl sha256:{'5' * 64}" in text


def test_pages_link_wheels_with_hashes_and_metadata(tmp_path: Path) -> None:
    wheel = locked(tmp_path, "Demo.Pkg", "Requires-Python: >=3.10,<4\n", build="0_sm86")
    write_index(tmp_path, [wheel])
    root = tmp_path / "simple"
    assert [link["href"] for link in anchors(root / "index.html")] == ["demo-pkg/"]
    (link,) = anchors(root / "demo-pkg" / "index.html")
    address = urlsplit(link["href"])
    target = (root / "demo-pkg" / unquote(address.path)).resolve()
    assert target == tmp_path / wheel.file
    assert address.fragment == f"sha256={wheel.sha256}"
    assert link["data-requires-python"] == ">=3.10,<4"
    metadata = (tmp_path / f"{wheel.file}.metadata").read_bytes()
    assert metadata.startswith(b"Metadata-Version")
    assert link["data-core-metadata"] == f"sha256={hashlib.sha256(metadata).hexdigest()}"


def test_json_says_the_same(tmp_path: Path) -> None:
    wheels = [locked(tmp_path, "demo"), locked(tmp_path, "other")]
    write_index(tmp_path, wheels)
    root = json.loads((tmp_path / "simple/index.json").read_text())
    assert root["projects"] == [{"name": "demo"}, {"name": "other"}]
    page = json.loads((tmp_path / "simple/demo/index.json").read_text())
    (file,) = page["files"]
    assert (page["name"], page["versions"]) == ("demo", ["1.0"])
    assert file["filename"] == wheels[0].file
    assert file["hashes"] == {"sha256": wheels[0].sha256}
    assert file["size"] == wheels[0].size


def test_writing_again_changes_no_byte(tmp_path: Path) -> None:
    wheels = [locked(tmp_path, "demo")]

    def contents() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    write_index(tmp_path, wheels)
    before = contents()
    write_index(tmp_path, wheels)
    assert contents() == before
