"""What lies at a path decides how it is opened, not what it is called."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

import pytest

from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.opener import open_artifact
from wheelslim.errors import ArchiveError, ArtifactError, StorageError

if TYPE_CHECKING:
    from pathlib import Path


def wheel(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo/data", b"data")
        archive.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        archive.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("demo-1.0.dist-info/RECORD", "")
    return path


@pytest.mark.parametrize("name", ["demo-1.0-py3-none-any.whl", "demo.zip", "demo"])
def test_a_wheel_is_known_by_its_bytes(tmp_path: Path, name: str) -> None:
    with open_artifact(wheel(tmp_path / name)) as artifact:
        assert artifact.kind is ArtifactKind.WHEEL
        assert next(m.name for m, _ in artifact.walk(lambda *_: False)) == "demo/data"


def test_a_directory_is_a_tree(tmp_path: Path) -> None:
    with open_artifact(tmp_path) as artifact:
        assert artifact.kind is ArtifactKind.TREE


@pytest.mark.parametrize("content", [b"", b"x", b"\x7fELF"])
def test_anything_else_is_a_single_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with open_artifact(path) as artifact:
        assert artifact.kind is ArtifactKind.FILE
        assert artifact.size == len(content)


def test_a_zip_that_begins_as_conda_packages_do_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "package.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
    with pytest.raises(ArchiveError, match="info"):
        open_artifact(path)


def test_what_is_not_there_is_an_error_of_storage(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        open_artifact(tmp_path / "absent.whl")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArtifactError, match="neither a file nor a directory"):
        open_artifact(tmp_path / "pipe")


def test_a_wheel_by_name_that_is_no_zip_is_a_broken_wheel(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(b"<html>Not found</html>")
    with pytest.raises(ArchiveError, match="no zip file"):
        open_artifact(path)
