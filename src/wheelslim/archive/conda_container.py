"""The two containers of a conda package: which tar streams they hold, and where.

Format: CEP 35 (``.conda``: a zip of stored members ``metadata.json``, ``pkg-*.tar.zst`` and
``info-*.tar.zst``); ``.tar.bz2``: one tar with the members of ``info/`` first.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.block_reader import BlockReader
from wheelslim.archive.compressed import Codec, decompressed
from wheelslim.archive.read_ahead import read_ahead
from wheelslim.archive.tar_stream import TarReader
from wheelslim.archive.zip_format import Method
from wheelslim.archive.zip_reader import ZipEntry, read_zip
from wheelslim.errors import ArchiveError, Place, WheelslimError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wheelslim.archive.quick_copy import QuickCopy
    from wheelslim.source import Source

METADATA = "metadata.json"
_VERSION_KEY = "conda_pkg_format_version"
_VERSION = 2
_BZ2_MAGIC = b"BZh"
_ZIP_MAGIC = b"PK\x03\x04"
_MAX_METADATA = 1 << 20


@dataclass(frozen=True)
class Component:
    """One compressed tar: ``name`` is ``info``, ``pkg``, or ``all`` for that of a ``.tar.bz2``."""

    name: str
    member: str | None
    source: Source
    codec: Codec
    crc: int | None

    @contextmanager
    def open(
        self, progress: Callable[[int], None] | None = None, copy: QuickCopy | None = None
    ) -> Iterator[TarReader]:
        """Read the tar from its start, decompressing ahead in a thread.

        ``progress`` is called, in that thread, with the number of compressed bytes of each step;
        ``copy`` takes what is read.

        Raises:
            ArchiveError: from what is read inside the block, with the component as its member where
                no other is known.
        """
        try:
            stream = decompressed(self.source, self.codec, self.crc, progress)
            with read_ahead(stream if copy is None else copy.passing(stream)) as blocks:
                yield TarReader(BlockReader(blocks))
        except WheelslimError as error:
            if self.member is not None:
                error.at(member=self.member)
            raise


@dataclass(frozen=True)
class Container:
    """A package's file: its kind, its tars in stored order, and all members of the zip."""

    kind: ArtifactKind
    components: tuple[Component, ...]
    entries: tuple[ZipEntry, ...]
    source: Source

    def component(self, *names: str) -> Component | None:
        """Return the first component of one of these names."""
        return next((found for found in self.components if found.name in names), None)


def read_container(source: Source) -> Container:
    """Find the tar streams of the package that ``source`` covers.

    Raises:
        ArchiveError: it is neither kind of package, or a part is missing, doubled or compressed
            in another way.
    """
    magic = source.read(0, min(4, source.size))
    if magic.startswith(_BZ2_MAGIC):
        component = Component("all", None, source, Codec.BZIP2, None)
        return Container(ArtifactKind.TAR_BZ2, (component,), (), source)
    if magic != _ZIP_MAGIC:
        raise ArchiveError(
            "this is no conda package",
            expected="a zip (.conda) or bzip2 (.tar.bz2) file",
            found=f"first bytes {magic.hex(' ')}" if magic else "an empty file",
        )
    archive = read_zip(source)
    components = []
    for entry in archive.entries:
        name = component_name(entry.name)
        if entry.method != Method.STORED:
            raise ArchiveError(
                "a member of the .conda zip is compressed, which the format forbids (CEP 35)",
                place=Place(member=entry.name),
                expected="method 0 (stored)",
                found=f"method {entry.method}",
            )
        if name is not None:
            data = archive.compressed(entry)
            components.append(Component(name, entry.name, data, Codec.ZSTD, entry.crc))
    for name in ("info", "pkg"):
        found = [component.member for component in components if component.name == name]
        if len(found) != 1:
            raise ArchiveError(
                f"the package needs exactly one {name}-*.tar.zst",
                found=", ".join(filter(None, found)) or "none",
                hint="Download or build the package again",
            )
    container = Container(ArtifactKind.CONDA, tuple(components), archive.entries, source)
    _check_version(container)
    return container


def component_name(member: str) -> str | None:
    """Return ``info`` or ``pkg`` for a zip member that is one of the two tars."""
    for name in ("info", "pkg"):
        if member.startswith(f"{name}-") and member.endswith(".tar.zst") and "/" not in member:
            return name
    return None


def _check_version(container: Container) -> None:
    entry = next((entry for entry in container.entries if entry.name == METADATA), None)
    if entry is None:
        raise ArchiveError("the package has no metadata.json", hint="Download or build the package again")
    if entry.size > _MAX_METADATA:
        raise ArchiveError("metadata.json is too large", found=f"{entry.size} bytes")
    data = container.source.read(entry.data_offset, entry.size)
    try:
        version = json.loads(data).get(_VERSION_KEY)
    except (ValueError, AttributeError) as error:
        raise ArchiveError("metadata.json does not parse", place=Place(member=METADATA)) from error
    if version != _VERSION:
        raise ArchiveError(
            "the version of the .conda format is not supported",
            place=Place(member=METADATA),
            expected=str(_VERSION),
            found=repr(version),
        )
