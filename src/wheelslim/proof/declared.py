"""Changes that were asked for beyond the driver's rule, and that a proof therefore allows."""

from __future__ import annotations

from dataclasses import dataclass

from wheelslim.elf.strip import StripMode


@dataclass(frozen=True)
class Declared:
    """What a slimmed library may show.

    ``stored_anew``: entries may be compressed otherwise, and concatenated ones be apart, as long as
    their plain payloads are the same. ``emptied`` are offsets, in the original library's file, of
    containers that may be empty although a device ran something of them. ``strip``: sections that
    nothing loads may be gone. ``embedded``: containers outside the device sections may have lost
    entries too, and be zeros where no device ran anything of them.
    """

    stored_anew: bool = False
    emptied: frozenset[int] = frozenset()
    strip: StripMode = StripMode.NONE
    embedded: bool = False


NOTHING_DECLARED = Declared()
