"""What the members of an artifact are, by their first bytes and, where those say nothing, by name."""

from __future__ import annotations

from enum import Enum
from pathlib import PurePosixPath

from wheelslim.elf.layout import EHDR, Machine
from wheelslim.elf.reader import is_elf, is_elf64
from wheelslim.fatbin.layout import CONTAINER_MAGIC_BYTES

_ARCHIVE_MAGICS = (b"!<arch>\n", b"!<thin>\n")
_MACHINE = 2
_HEADERS = frozenset(
    {".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".inl", ".ipp", ".tpp", ".inc", ".hip", ".def"}
)


class ContentKind(Enum):
    """The kinds of member that reports tell apart."""

    LIBRARY = "libraries"
    """ELF files for the host: shared libraries, extension modules, executables."""
    FATBIN = "loose fatbins"
    CUBIN = "loose cubins"
    PTX = "loose PTX"
    STATIC_LIBRARY = "static libraries"
    HEADER = "headers"
    PYTHON = "Python"
    BYTECODE = "Python bytecode"
    OTHER = "other"


_BY_SUFFIX = {
    ".ptx": ContentKind.PTX,
    ".py": ContentKind.PYTHON,
    ".pyi": ContentKind.PYTHON,
    ".pyx": ContentKind.PYTHON,
    ".pxd": ContentKind.PYTHON,
    ".pyc": ContentKind.BYTECODE,
    **dict.fromkeys(_HEADERS, ContentKind.HEADER),
}


def content_kind(name: str, head: bytes) -> ContentKind:
    """Tell what a member is; ``head`` is its first bytes."""
    if is_elf64(head) and len(head) >= EHDR.size:
        machine = EHDR.unpack(head[: EHDR.size])[_MACHINE]
        return ContentKind.CUBIN if machine == Machine.CUDA else ContentKind.LIBRARY
    if is_elf(head):
        return ContentKind.OTHER
    if head.startswith(CONTAINER_MAGIC_BYTES):
        return ContentKind.FATBIN
    if head.startswith(_ARCHIVE_MAGICS):
        return ContentKind.STATIC_LIBRARY
    return _BY_SUFFIX.get(PurePosixPath(name).suffix.lower(), ContentKind.OTHER)
