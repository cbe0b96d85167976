"""One of the two libraries that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.library import read_library

if TYPE_CHECKING:
    from wheelslim.elf.model import ElfFile
    from wheelslim.library import Library
    from wheelslim.source import Source


@dataclass(frozen=True, slots=True)
class Side:
    """A library with the source that it was read from."""

    source: Source
    library: Library

    @classmethod
    def of(cls, source: Source) -> Side:
        """Read the library.

        Raises:
            ElfFormatError: the file is no well-formed ELF file.
        """
        return cls(source, read_library(source))

    @property
    def elf(self) -> ElfFile:
        """Its headers."""
        return self.library.elf
