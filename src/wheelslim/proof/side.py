"""One of the two libraries that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.embedded import find_embedded
from wheelslim.library import read_library

if TYPE_CHECKING:
    from wheelslim.elf.model import ElfFile
    from wheelslim.embedded import EmbeddedRegion
    from wheelslim.library import Library
    from wheelslim.source import Source


@dataclass(frozen=True, slots=True)
class Side:
    """A library with the source that it was read from."""

    source: Source
    library: Library
    regions: tuple[EmbeddedRegion, ...] = ()

    @classmethod
    def of(cls, source: Source, *, embedded: bool = False) -> Side:
        """Read the library, with ``embedded`` also the containers outside its device sections.

        Raises:
            ElfFormatError: the file is no well-formed ELF file.
        """
        library = read_library(source)
        return cls(source, library, find_embedded(source, library.elf) if embedded else ())

    @property
    def elf(self) -> ElfFile:
        """Its headers."""
        return self.library.elf
