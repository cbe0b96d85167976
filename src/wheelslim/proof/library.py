"""The promises, proved on two libraries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.errors import VerifyError
from wheelslim.proof.declared import NOTHING_DECLARED
from wheelslim.proof.device import prove_device
from wheelslim.proof.host import prove_host
from wheelslim.proof.side import Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.architecture import ComputeCapability
    from wheelslim.elf.model import ElfFile
    from wheelslim.proof.declared import Declared
    from wheelslim.source import Source


_CODE = ".text"
"""Nothing that slims a library changes the size or address of its code."""


@dataclass(frozen=True, slots=True)
class LibraryProof:
    """What was compared: containers, (container, device) pairs, kept entries, host bytes in bytes."""

    containers: int
    choices: int
    entries: int
    host_bytes: int

    def __add__(self, other: LibraryProof) -> LibraryProof:
        """Sum the counts."""
        return LibraryProof(
            self.containers + other.containers,
            self.choices + other.choices,
            self.entries + other.entries,
            self.host_bytes + other.host_bytes,
        )


NOTHING_PROVED = LibraryProof(0, 0, 0, 0)
"""Where a sum of proofs starts."""


def verify_library(
    original: Source,
    slimmed: Source,
    devices: Sequence[ComputeCapability],
    declared: Declared = NOTHING_DECLARED,
) -> LibraryProof:
    """Prove that each device runs the same device code from both, and that the host part is the same.

    ``declared`` are changes that were asked for.

    Raises:
        VerifyError: the first promise that does not hold, with its place in the slimmed file.
        ElfFormatError: one of the two is no well-formed ELF file.
    """
    before, after = Side.of(original, embedded=declared.embedded), Side.of(slimmed)
    check_related(before.elf, after.elf)
    device = prove_device(before, after, devices, declared)
    host = prove_host(before, after, declared)
    return LibraryProof(device.containers, device.choices, device.entries, host)


def check_related(before: ElfFile, after: ElfFile) -> None:
    """Check that the two files are of one kind.

    Raises:
        VerifyError: they are unrelated.
    """
    for name in ("e_type", "e_machine", "e_flags", "e_entry"):
        old, new = getattr(before.header, name), getattr(after.header, name)
        if old != new:
            raise VerifyError(
                f"the files are unrelated: {name} differs", expected=f"{old:#x}", found=f"{new:#x}"
            )
    if before.header.e_ident != after.header.e_ident:
        raise VerifyError("the files are unrelated: e_ident differs")
    text, new_text = before.section(_CODE), after.section(_CODE)
    if text is not None and new_text is not None:
        old, new = (text.sh_addr, text.sh_size), (new_text.sh_addr, new_text.sh_size)
        if old != new:
            raise VerifyError(
                "the files are unrelated: their code has another size or address",
                expected=f"{text.sh_size} bytes at {text.sh_addr:#x}",
                found=f"{new_text.sh_size} bytes at {new_text.sh_addr:#x}",
            )
