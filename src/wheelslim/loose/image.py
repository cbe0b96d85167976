"""What one loose file is, read from its first bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.elf.layout import EHDR, EI_ABIVERSION, ELF_MAGIC, Machine
from wheelslim.fatbin.layout import CONTAINER_MAGIC_BYTES

if TYPE_CHECKING:
    from wheelslim.architecture import Architecture

_MACHINE = 2
_FLAGS = 7
_SMALLEST, _LARGEST = 30, 199
_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d{2,3}[af]?)\b", re.MULTILINE)


class LooseKind(Enum):
    """Kinds of loose device code."""

    CUBIN = "cubin"
    PTX = "PTX"
    FATBIN = "fatbin"
    LIBRARY = "library"
    """A shared library that is one of several, told apart by the architecture in their names."""


@dataclass(frozen=True, slots=True)
class LooseImage:
    """One file of device code.

    ``architecture`` is None where it is not known, and such a file stays; ``why`` says why not.
    """

    name: str
    size: int
    kind: LooseKind
    architecture: Architecture | None
    why: str = ""


def is_cubin(head: bytes) -> bool:
    """Whether a file that starts with these 64 bytes is a cubin (ELF machine 190)."""
    return (
        len(head) >= EHDR.size and head[:4] == ELF_MAGIC and EHDR.unpack_from(head)[_MACHINE] == Machine.CUDA
    )


def is_fatbin(head: bytes) -> bool:
    """Whether a file that starts with these bytes claims to be a fatbin container."""
    return head.startswith(CONTAINER_MAGIC_BYTES)


def cubin_number(head: bytes) -> int | None:
    """Return the SM number of a cubin, None for an ABI version that is not known.

    ABI version 7 has the real SM in bits 16 to 23 of e_flags, version 8 in bits 8 to 15; the suffix
    is in neither (measured: nvcc 11 to 13).
    """
    shift = {7: 16, 8: 8}.get(head[EI_ABIVERSION])
    if shift is None:
        return None
    number = EHDR.unpack_from(head)[_FLAGS] >> shift & 0xFF
    return number if _SMALLEST <= number <= _LARGEST else None


def ptx_target(text: bytes) -> str | None:
    """Return the architecture that PTX is written for (``.target sm_90a``) as ``90a``."""
    found = _TARGET.search(text)
    return found[1].decode("ascii") if found else None
