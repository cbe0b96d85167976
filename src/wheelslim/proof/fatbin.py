"""Two loose fatbins: each device runs the same code from both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.errors import Place, VerifyError
from wheelslim.fatbin.reader import read_tiling
from wheelslim.proof.anew import prove_stored_anew, units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.architecture import ComputeCapability
    from wheelslim.source import Source


def verify_fatbin(original: Source, slimmed: Source, devices: Sequence[ComputeCapability]) -> int:
    """Prove it container by container; returns the number of entries compared.

    Raises:
        VerifyError: the first promise that does not hold.
        FatbinFormatError: one of the two is no sequence of containers.
    """
    before, after = read_tiling(original, 0).containers, read_tiling(slimmed, 0).containers
    if len(before) != len(after):
        raise VerifyError(
            "the fatbins have different numbers of containers",
            expected=str(len(before)),
            found=str(len(after)),
        )
    return sum(
        prove_stored_anew(
            list(units(original, old)), list(units(slimmed, new)), devices, Place(offset=new.offset)
        )
        for old, new in zip(before, after, strict=True)
    )
