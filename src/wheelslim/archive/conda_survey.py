"""The first pass over a conda package: everything is hashed and planned, nothing is written.

RECORD may stand before the libraries in the tar, and paths.json in another tar: what they will say
has to be known before the first byte of the result. A planned library is written to a scratch file
and read back from there for ``Rewriter.confirm``; its SHA-256 is what the last pass demands of the
finished package, so that what was confirmed is what people get.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.archive.allowance import Allowance
from wheelslim.archive.artifact import MemberType
from wheelslim.archive.compressed import Codec
from wheelslim.archive.conda import is_info, member_place, spill
from wheelslim.archive.paths_json import Content
from wheelslim.archive.placeholder import OccurrenceCounter
from wheelslim.archive.quick_copy import QuickCopy
from wheelslim.archive.tar_header import without_size
from wheelslim.archive.tar_names import TarNames
from wheelslim.pieces import stream, total_size
from wheelslim.rewriter import HEAD_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from wheelslim.archive.conda import CondaArtifact
    from wheelslim.archive.conda_container import Component
    from wheelslim.archive.paths_json import PathsJson
    from wheelslim.archive.scratch import Scratch
    from wheelslim.archive.tar_header import TarHeader
    from wheelslim.archive.tar_stream import TarReader
    from wheelslim.pieces import Piece
    from wheelslim.rewriter import Rewriter
    from wheelslim.source import Source

MAX_TEXT = 64 << 20
_RECORD = ".dist-info/RECORD"


@dataclass(frozen=True, slots=True)
class Slimmed:
    """A library's new content: the pieces, and the hash and size (bytes) that they come to."""

    pieces: Sequence[Piece]
    content: Content


@dataclass(frozen=True, slots=True)
class Member:
    """One member as surveyed.

    ``header`` is the SHA-256 of its header group without the size, ``header_size`` the bytes of the
    group with the globals before it, ``size`` those of the data that follow.
    """

    name: str
    component: str
    type: MemberType
    header: bytes
    header_size: int
    size: int


@dataclass
class Survey:
    """What the first pass found.

    ``contents`` holds every name (a hard link has the content of its file); ``slimmed`` and
    ``texts`` (RECORD files) are by file. ``hard_links`` maps each hard link to its file, ``copies``
    a component to what it is quicker read from, as long as the scratch files are there.
    """

    members: list[Member] = field(default_factory=list)
    contents: dict[str, Content] = field(default_factory=dict)
    slimmed: dict[str, Slimmed] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    raw_headers: dict[str, bytes] = field(default_factory=dict)
    hard_links: dict[str, str] = field(default_factory=dict)
    drop_wishes: set[str] = field(default_factory=set)
    copies: dict[str, Component] = field(default_factory=dict)
    names: TarNames = field(default_factory=TarNames)
    notices: list[str] = field(default_factory=list)


class Surveyor:
    """Makes the survey of one package."""

    def __init__(self, paths: PathsJson, rewriter: Rewriter, scratch: Scratch, directory: Path) -> None:
        """Plan with ``rewriter``; candidates lie in ``scratch``, whose files are in ``directory``."""
        self._paths = paths
        self._rewriter = rewriter
        self._scratch = scratch
        self._directory = directory
        self._survey = Survey()

    def run(self, artifact: CondaArtifact, progress: Callable[[int], None] | None) -> Survey:
        """Read the package once.

        Raises:
            ArchiveError: it is broken or hostile.
            VerifyError: a planned library does not keep its promises.
        """
        survey = self._survey
        survey.names = TarNames(Allowance(artifact.size))
        for component in artifact.container.components:
            copy = None
            if component.codec is Codec.BZIP2:
                copy = QuickCopy(self._scratch.take(), self._directory)
            for header, tar in artifact.component_headers(component, survey.names, progress, copy):
                survey.members.append(
                    Member(
                        name=header.name,
                        component=component.name,
                        type=header.type,
                        header=header_digest(header),
                        header_size=len(header.globals) + len(header.raw),
                        size=header.size,
                    )
                )
                with member_place(header.name):
                    survey.contents[header.name] = self._take(header, tar)
            if copy is not None:
                survey.copies[component.name] = copy.component(component)
        survey.names.finish()
        return survey

    def _take(self, header: TarHeader, tar: TarReader) -> Content:
        name = header.name
        if header.type is MemberType.HARDLINK:
            target = header.link_target or ""
            self._survey.hard_links[name] = target
            if self._rewriter.drops(name):
                self._survey.drop_wishes.add(name)
            return self._survey.contents[target]
        if header.type is not MemberType.FILE:
            return Content(header.type)
        if is_info(name):
            self._survey.raw_headers[name] = header.raw
            return self._hashed(header, tar, b"")
        head = tar.head(HEAD_SIZE)
        if self._rewriter.drops(name):
            self._survey.drop_wishes.add(name)
        elif self._rewriter.wants(name, header.size, head):
            return self._candidate(header, tar, head)
        elif is_record(name) and header.size <= MAX_TEXT:
            text = head + b"".join(tar.data())
            self._survey.texts[name] = text
            self._survey.raw_headers[name] = header.raw
            return Content(header.type, hashlib.sha256(text).hexdigest(), len(text))
        return self._hashed(header, tar, head)

    def _hashed(self, header: TarHeader, tar: TarReader, head: bytes) -> Content:
        digest = hashlib.sha256(head)
        for part in tar.data():
            digest.update(part)
        return Content(header.type, digest.hexdigest(), header.size)

    def _candidate(self, header: TarHeader, tar: TarReader, head: bytes) -> Content:
        tally = _Tally(self._paths.placeholder(header.name))
        tally.feed(head)
        file = self._scratch.take()
        try:
            source = spill(file, head, tally.passing(tar.data()), self._directory)
            content = Content(header.type, tally.sha256, source.size)
            pieces = self._rewriter.plan(header.name, source)
            if pieces is not None:
                slimmed = self._confirmed(header, source, pieces, tally.placeholders)
                if slimmed is not None and slimmed.content != content:
                    self._survey.slimmed[header.name] = slimmed
                    self._survey.raw_headers[header.name] = header.raw
        finally:
            self._scratch.give_back(file)
        return content

    def _confirmed(
        self, header: TarHeader, source: Source, pieces: Sequence[Piece], placeholders: int
    ) -> Slimmed | None:
        """Write the new content to scratch, read it back for the rewriter; None if it may not be used."""
        tally = _Tally(self._paths.placeholder(header.name))
        file = self._scratch.take()
        try:
            written = spill(file, b"", tally.passing(stream(pieces, source)), self._directory)
            if tally.placeholders != placeholders:
                self._survey.notices.append(
                    f"{header.name}: kept as it is: the slimmed file would hold the build prefix "
                    f"{tally.placeholders} times instead of {placeholders}, and conda rewrites each"
                )
                return None
            self._rewriter.confirm(header.name, source, written)
        finally:
            self._scratch.give_back(file)
        return Slimmed(pieces, Content(header.type, tally.sha256, total_size(pieces)))


class _Tally:
    """SHA-256, and occurrences of the build prefix, of the bytes that go through."""

    def __init__(self, placeholder: bytes | None) -> None:
        self._digest = hashlib.sha256()
        self._counter = None if placeholder is None else OccurrenceCounter(placeholder)

    def feed(self, part: bytes | memoryview) -> None:
        self._digest.update(part)
        if self._counter is not None:
            self._counter.feed(part)

    def passing(self, parts: Iterator[bytes] | Iterator[memoryview]) -> Iterator[bytes | memoryview]:
        for part in parts:
            self.feed(part)
            yield part

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    @property
    def placeholders(self) -> int:
        return 0 if self._counter is None else self._counter.count


def header_digest(header: TarHeader) -> bytes:
    """Return the SHA-256 of all that a member's header says but its size."""
    return hashlib.sha256(header.globals + without_size(header.raw)).digest()


def is_record(name: str) -> bool:
    """Whether a member is the RECORD of a Python distribution."""
    return name.endswith(_RECORD)
