"""The second pass over a conda package: it is read again, and the result written."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from wheelslim.archive.conda import STAMP, is_info, leads, member_place, spill
from wheelslim.archive.conda_output import TarBz2Writer
from wheelslim.archive.tar_header import padded, resized
from wheelslim.archive.tar_names import TarNames
from wheelslim.archive.tar_stream import end_size
from wheelslim.errors import ArchiveError, Place
from wheelslim.pieces import stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wheelslim.archive.conda import CondaArtifact
    from wheelslim.archive.conda_container import Component
    from wheelslim.archive.conda_edits import Edits
    from wheelslim.archive.conda_output import CondaWriter
    from wheelslim.archive.conda_survey import Member, Survey
    from wheelslim.archive.progress import Progress
    from wheelslim.archive.scratch import Scratch
    from wheelslim.archive.tar_header import TarHeader
    from wheelslim.archive.tar_stream import TarReader, TarWriter


class CondaRewrite:
    """One package as it is written again."""

    def __init__(
        self,
        artifact: CondaArtifact,
        survey: Survey,
        edits: Edits,
        *,
        scratch: Scratch,
        directory: Path,
        progress: Progress,
    ) -> None:
        """Apply ``edits`` to ``artifact``; one library at a time lies in ``scratch``."""
        self._artifact = artifact
        self._survey = survey
        self._edits = edits
        self._scratch = scratch
        self._directory = directory
        self._progress = progress

    def write_tar_bz2(self, destination: Path) -> None:
        """Write a ``.tar.bz2``: the members of ``info/`` first, as clients expect."""
        components = sorted(self._artifact.container.components, key=lambda component: component.name)
        with closing(TarBz2Writer(destination)) as writer, writer.tar() as tar:
            for component in components:
                stamped = False
                for header, reader in self._members(component):
                    # The stamp goes behind the last member of info/.
                    if not stamped and component.name == "all" and not leads(header.name):
                        self._add_stamp(tar)
                        stamped = True
                    self._copy(header, reader, tar)
                if not stamped and component.name != "pkg":
                    self._add_stamp(tar)

    def write_conda(self, writer: CondaWriter) -> None:
        """Write a ``.conda`` from a ``.conda``: untouched tars as they lie, all in the same order."""
        container = self._artifact.container
        components = {component.member: component for component in container.components}
        for entry in container.entries:
            component = components.get(entry.name)
            if component is None or not self._edits.touches(self._survey, component.name):
                data = container.source.part(entry.data_offset, entry.size)
                writer.copy(entry, data, self._progress.write_step)
                continue
            kept = [member for member in self._survey.members if member.component == component.name]
            is_info_tar = component.name == "info"
            with writer.tar(component.name, self._tar_size(kept, stamp=is_info_tar)) as tar:
                for header, reader in self._members(component):
                    self._copy(header, reader, tar)
                if is_info_tar:
                    self._add_stamp(tar)

    def split(self, writer: CondaWriter) -> None:
        """Write a ``.conda`` from a ``.tar.bz2``, whose members of ``info/`` come first."""
        _check_links(self._survey)
        (component,) = self._artifact.container.components
        leading = [member for member in self._survey.members if leads(member.name)]
        others = [member for member in self._survey.members if not leads(member.name)]
        members = self._members(component)
        writer.metadata()
        pending = None
        with writer.tar("info", self._tar_size(leading, stamp=True)) as tar:
            for header, reader in members:
                if not leads(header.name):
                    pending = (header, reader)
                    break
                self._copy(header, reader, tar)
            self._add_stamp(tar)
        with writer.tar("pkg", self._tar_size(others, stamp=False)) as tar:
            if pending is not None:
                self._copy(*pending, tar)
            for header, reader in members:
                self._copy(header, reader, tar)

    def _members(self, component: Component) -> Iterator[tuple[TarHeader, TarReader]]:
        quicker = self._survey.copies.get(component.name, component)
        return self._artifact.component_headers(quicker, TarNames(), self._progress.write_step)

    def _copy(self, header: TarHeader, reader: TarReader, tar: TarWriter) -> None:
        name = header.name
        if name in self._edits.dropped:
            return
        raw = header.globals + header.raw
        with member_place(name):
            if name in self._edits.texts:
                text = self._edits.texts[name]
                tar.add(header.globals + resized(header.raw, len(text)), len(text), [text])
            elif name in self._edits.slimmed:
                slimmed = self._edits.slimmed[name]
                size = slimmed.content.size
                file = self._scratch.take()
                try:
                    source = spill(file, b"", reader.data(), self._directory)
                    raw = header.globals + resized(header.raw, size)
                    tar.add(raw, size, stream(slimmed.pieces, source))
                finally:
                    self._scratch.give_back(file)
            else:
                tar.add(raw, header.size, reader.data())

    def _add_stamp(self, tar: TarWriter) -> None:
        if self._edits.stamp_header is not None:
            text = self._edits.texts[STAMP]
            tar.add(self._edits.stamp_header, len(text), [text])

    def _tar_size(self, members: list[Member], *, stamp: bool) -> int:
        """Return the bytes that a tar of ``members`` will have."""
        size = 0
        for member in members:
            name = member.name
            if name in self._edits.dropped:
                continue
            if name in self._edits.new_sizes:
                raw = self._survey.raw_headers[name]
                new = self._edits.new_sizes[name]
                size += member.header_size - len(raw) + len(resized(raw, new)) + padded(new)
            else:
                size += member.header_size + padded(member.size)
        if stamp and self._edits.stamp_header is not None:
            size += len(self._edits.stamp_header) + padded(len(self._edits.texts[STAMP]))
        return size + end_size(size)


def _check_links(survey: Survey) -> None:
    """Refuse what a split into two tars would cut apart."""
    for name, target in survey.hard_links.items():
        if is_info(name) is not is_info(target):
            raise ArchiveError(
                "a hard link joins info/ to the package's files, so the two cannot go into a .conda",
                place=Place(member=name),
                found=target,
                hint="Keep the format, or pack the package again (cph extract, cph create)",
            )
