"""The words that name a container, changed to its new address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.elf.filemap import Overlay
from wheelslim.fatbin.reader import HeaderWindow
from wheelslim.pieces import Data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wheelslim.library import Library
    from wheelslim.source import Source

_WORD = 8
_NEAR = 64


def retargeted(source: Source, library: Library, moved: Mapping[int, int]) -> list[Overlay]:
    """Point the wrappers at the new places: the relocation's addend, and the word in the file.

    ``moved`` maps old container addresses to new ones. Linkers write the address into the word too;
    where they did, it follows. With RELR relocations the word is all there is.
    """
    patches: dict[int, bytes] = {}
    window = HeaderWindow(source)
    wrapped = {old: reference for part in library.device for old, reference in part.wrapped.items()}
    for old, new in moved.items():
        reference = wrapped[old]
        value = new.to_bytes(_WORD, "little")
        if reference.addend_offset is not None:
            patches[reference.addend_offset] = value
        slot = library.elf.offset_of(reference.slot, _WORD)
        if slot is not None and int.from_bytes(window.read(slot, _WORD), "little") == old:
            patches[slot] = value
    return _joined(source, patches)


def _joined(source: Source, patches: Mapping[int, bytes]) -> list[Overlay]:
    """Join patches that lie close together, so that 100,000 of them do not become as many pieces.

    All sections at once: the relocations of two sections lie among one another.
    """
    overlays: list[Overlay] = []
    group: list[int] = []
    for offset in [*sorted(patches), None]:
        if group and (offset is None or offset - group[-1] > _NEAR):
            start, end = group[0], group[-1] + _WORD
            data = bytearray(source.read(start, end - start))
            for at in group:
                data[at - start : at - start + _WORD] = patches[at]
            overlays.append(Overlay(start, (Data(bytes(data)),)))
            group = []
        if offset is not None:
            group.append(offset)
    return overlays
