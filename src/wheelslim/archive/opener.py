"""One door for every kind of artifact: what lies at a path decides, not its name."""

from __future__ import annotations

import stat
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from wheelslim.archive.storage import storage_errors
from wheelslim.errors import ArtifactError, Place

if TYPE_CHECKING:
    from pathlib import Path

    from wheelslim.archive.conda import CondaArtifact
    from wheelslim.archive.file_artifact import FileArtifact
    from wheelslim.archive.tree import TreeArtifact
    from wheelslim.archive.wheel import WheelArtifact

AnyArtifact: TypeAlias = "WheelArtifact | CondaArtifact | TreeArtifact | FileArtifact"

_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
_BZIP2_MAGIC = b"BZh"
_CONDA_SUFFIX = ".conda"
_CONDA_METADATA = b"metadata.json"
_LOCAL_NAME = 30
"""Where in a zip's first local header the name of its first member starts (APPNOTE 4.3.7)."""


class Family(Enum):
    """What readers there are; a conda package is one of two kinds of file."""

    WHEEL = "wheel"
    CONDA = "conda package"
    TREE = "directory"
    FILE = "file"


def family_of(path: Path) -> Family:
    """Say who reads what lies at ``path``; whether it is whole shows when it is read.

    Raises:
        ArtifactError: neither a file nor a directory.
        StorageError: the operating system refuses.
    """
    with storage_errors(path):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return Family.TREE
        if not stat.S_ISREG(mode):
            raise ArtifactError("neither a file nor a directory", place=Place(artifact=str(path)))
        with path.open("rb") as file:
            head = file.read(_LOCAL_NAME + len(_CONDA_METADATA))
    if head.startswith(_BZIP2_MAGIC) or (head.startswith(_ZIP_MAGICS) and _is_conda(path, head)):
        return Family.CONDA
    if head.startswith(_ZIP_MAGICS) or path.suffix.lower() == ".whl":
        return Family.WHEEL
    return Family.FILE


def open_artifact(path: Path, scratch_dir: Path | None = None) -> AnyArtifact:
    """Open a wheel, a conda package, a directory or a single file; use it as a context manager.

    ``scratch_dir`` is where members are inflated; the system's directory for temporary files
    unless given.

    Raises:
        ArtifactError: neither a file nor a directory, or a broken package.
        StorageError: the operating system refuses.
    """
    family = family_of(path)
    if family is Family.TREE:
        from wheelslim.archive.tree import TreeArtifact

        return TreeArtifact(path)
    if family is Family.CONDA:
        from wheelslim.archive.conda import CondaArtifact

        return CondaArtifact(path, scratch_dir)
    if family is Family.WHEEL:
        from wheelslim.archive.wheel import WheelArtifact

        return WheelArtifact(path, scratch_dir=scratch_dir)
    from wheelslim.archive.file_artifact import FileArtifact

    return FileArtifact(path)


def _is_conda(path: Path, head: bytes) -> bool:
    """Tell a ``.conda`` from a wheel by its first member (CEP 35), or by its name."""
    return head[_LOCAL_NAME:] == _CONDA_METADATA or path.suffix.lower() == _CONDA_SUFFIX
