"""Runs of bytes that pruning has freed, and the whole pages of them that leave the file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wheelslim.elf.filemap import Gap


class AfterCut(Enum):
    """What is found at the addresses of a run once its pages have left the file."""

    UNMAPPED = "unmapped"
    """Nothing: no reference leads there."""
    ZEROS = "zeros"
    """Readable zeros: code may read across."""


@dataclass(frozen=True, slots=True)
class FreeRun:
    """Bytes of one section that nothing needs any more; the new content holds zeros there.

    ``offset`` is a file offset, ``size`` bytes, ``section`` the section's index.
    """

    offset: int
    size: int
    section: int
    after: AfterCut

    @property
    def end(self) -> int:
        """The first file offset after the run."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Hole:
    """The whole pages of a run, as the file range that is left out."""

    run: FreeRun
    gap: Gap

    @property
    def headers(self) -> int:
        """How many program headers it adds at most: the part after it, and itself where it is readable."""
        return 1 if self.run.after is AfterCut.UNMAPPED else 2
