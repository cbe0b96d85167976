"""The members that may change: looked at, inflated and planned ahead of the one that is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from wheelslim.archive.inflated import Inflated, inflate_member, part_of_member
from wheelslim.archive.prefetch import Prefetch
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.zip_format import Method
from wheelslim.errors import WheelslimError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wheelslim.archive.scratch import Scratch
    from wheelslim.archive.wheel import WheelArtifact
    from wheelslim.archive.workers import Workers
    from wheelslim.archive.zip_reader import ZipEntry
    from wheelslim.pieces import Piece
    from wheelslim.rewriter import Rewriter

ORIGINALS = 2
"""How many candidates may lie inflated at a time; together they are as large as the largest at most."""

_SMALLEST = 1 << 10
"""Bytes below which no file can hold device code: an ELF header, sections and one container."""

_DENSE = 0.45
"""Compressed bytes for each byte of a member, above which it is likely to hold device code: measured
on 25 wheels, host code lies below 0.4, and most of what holds device code above 0.55."""


@dataclass(frozen=True)
class Candidate:
    """An inflated member and its new content; ``release`` lets the next one in. Call it once."""

    original: Inflated
    pieces: Sequence[Piece]
    release: Callable[[], None]


class Candidates:
    """The members among ``members`` that ``rewriter`` wants to see."""

    def __init__(
        self,
        artifact: WheelArtifact,
        members: list[ZipEntry],
        rewriter: Rewriter,
        scratch: Scratch,
        workers: Workers,
    ) -> None:
        """Find them; ``start`` begins the work on them."""
        self._artifact = artifact
        self._rewriter = rewriter
        self._scratch = scratch
        self._workers = workers
        self._heads = self._find(members)
        # What is only looked at takes no scratch space.
        weights = {
            name: 0 if self._telling_part(name) is not None else artifact.entry(name).size
            for name in self._heads
        }
        self._prefetch = Prefetch(weights, self._prepare, workers.ahead, ORIGINALS)

    def start(self) -> None:
        """Begin to look at, inflate and plan them, in order."""
        self._prefetch.start()

    def result(self, name: str) -> Candidate | None:
        """Wait for what became of a member; None where it stays as it is."""
        return self._prefetch.result(name) if name in self._heads else None

    def _find(self, members: list[ZipEntry]) -> dict[str, bytes]:
        """Return the first bytes of the members that the rewriter wants to see, by name."""
        own = f"{self._artifact.dist_info}/"
        first_bytes = self._artifact.heads
        return {
            entry.name: first_bytes[entry.name]
            for entry in members
            if entry.size >= _SMALLEST
            and entry.name in first_bytes
            and not entry.name.startswith(own)
            and self._rewriter.wants(entry.name, entry.size, first_bytes[entry.name])
        }

    def _prepare(self, name: str) -> Candidate | None:
        """Inflate and plan one candidate; its slot is free again at once where it stays unchanged."""
        entry = self._artifact.entry(name)
        if self._stays(entry):
            self._prefetch.release(name)
            return None
        with storage_errors(self._artifact.path):
            original = inflate_member(self._artifact.archive, entry, self._scratch, self._workers)
        try:
            pieces = self._rewriter.plan(name, original.source)
        except WheelslimError as error:
            raise error.at(member=name) from error.__cause__
        if pieces is None:
            self._release(name, original)
            return None
        return Candidate(original, pieces, partial(self._release, name, original))

    def _telling_part(self, name: str) -> tuple[int, int] | None:
        """Return the part that may show that a member stays; None where it is likely not to."""
        entry = self._artifact.entry(name)
        if entry.method == Method.STORED or entry.compressed_size > entry.size * _DENSE:
            return None
        return self._rewriter.telling_part(name, entry.size, self._heads[name])

    def _stays(self, entry: ZipEntry) -> bool:
        place = self._telling_part(entry.name)
        if place is None:
            return False
        with storage_errors(self._artifact.path):
            part = part_of_member(self._artifact.archive, entry, *place, self._workers)
        return self._rewriter.stays(entry.name, entry.size, self._heads[entry.name], part)

    def _release(self, name: str, original: Inflated) -> None:
        original.release()
        self._prefetch.release(name)
