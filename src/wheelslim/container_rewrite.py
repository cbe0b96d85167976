"""New content for containers whose entries are stored anew: split, or compressed with zstd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.errors import FatbinFormatError
from wheelslim.fatbin.concatenated import apart, split
from wheelslim.fatbin.layout import (
    CONTAINER_HEADER,
    CONTAINER_MAGIC,
    CONTAINER_VERSION,
    EntryFlag,
    EntryKind,
)
from wheelslim.fatbin.recompress import recompressed
from wheelslim.pieces import Copy, Data, total_size
from wheelslim.plan import plan_entries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelslim.fatbin.model import Container, Entry
    from wheelslim.fatbin.recompress import NewEntry
    from wheelslim.pieces import Piece
    from wheelslim.plan import Request
    from wheelslim.source import Source
    from wheelslim.spool import SpoolFile


@dataclass(frozen=True)
class ContainerRewriter:
    """Gives ``LibraryOptions.rewrite``; new payloads go to ``spool``, one at a time.

    Concatenated entries are always split where that drops something; with ``recompress`` entries
    stored plain or as LZ4 become zstd.
    """

    request: Request
    spool: SpoolFile
    recompress: bool = False

    def rewrite(self, source: Source, container: Container, kept: tuple[int, ...]) -> list[Piece] | None:
        """Describe ``container`` with its ``kept`` entries stored anew, or None where nothing changes.

        Ranges that are copied count from the start of ``source``, as the container's offsets do.

        Raises:
            FatbinFormatError: a payload does not decompress that is to be recompressed.
            StorageError: no room for the new payloads.
        """
        if any(entry.kind == EntryKind.INDEX for entry in container.entries):
            return None
        wanted = self._wanted_subs(container)
        body: list[Piece] = []
        changed = False
        for index in kept:
            entry = container.entries[index]
            pieces = self._entry(source, entry, wanted.get(index, frozenset()))
            changed = changed or pieces is not None
            body.extend(pieces if pieces is not None else [Copy(entry.offset, entry.size)])
        if not changed:
            return None
        size = total_size(body)
        header = CONTAINER_HEADER.pack(CONTAINER_MAGIC, CONTAINER_VERSION, container.header_size, size)
        return [Data(header), *body]

    def _entry(self, source: Source, entry: Entry, wanted: frozenset[int]) -> list[Piece] | None:
        """Store one entry anew; None where it stays as it is."""
        if entry.kind == EntryKind.CONCATENATED:
            if len(wanted) == len(entry.subs) or not wanted:
                return None
            if any(entry.subs[number].flags & EntryFlag.OBFUSCATED for number in wanted):
                return None
            try:
                pieces = self._spooled(split(source, entry, wanted))
            except FatbinFormatError:
                return None  # Nobody asked for it to be stored anew.
            return pieces if total_size(pieces) < entry.size else None
        if not self.recompress:
            return None
        new = recompressed(source, entry)
        return None if new is None else self._spooled([new])

    def _spooled(self, entries: Iterable[NewEntry]) -> list[Piece]:
        return [piece for new in entries for piece in (Data(new.header), self.spool.append(new.payload))]

    def _wanted_subs(self, container: Container) -> dict[int, frozenset[int]]:
        """Plan the container as if its concatenated entries were apart; by index of the whole."""
        if not any(entry.kind == EntryKind.CONCATENATED for entry in container.entries):
            return {}
        units: list[Entry] = []
        origins: list[tuple[int, int]] = []
        for index, entry in enumerate(container.entries):
            parts = apart(entry) if entry.kind == EntryKind.CONCATENATED else (entry,)
            units.extend(parts)
            origins.extend((index, number) for number in range(len(parts)))
        found: dict[int, set[int]] = {}
        for unit in plan_entries(units, self.request).kept:
            index, number = origins[unit]
            found.setdefault(index, set()).add(number)
        return {index: frozenset(numbers) for index, numbers in found.items()}
