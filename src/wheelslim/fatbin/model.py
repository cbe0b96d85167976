"""What a section of device code holds: containers, their entries, and the wrappers that name them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from wheelslim.architecture import Architecture, Suffix
from wheelslim.fatbin.layout import EntryFlag, EntryKind

# Plain numbers: `&` with an IntFlag costs a microsecond, and a library has 50,000 entries.
_SUFFIX_ARCH, _SUFFIX_FAMILY, _ZSTD = (
    int(flag) for flag in (EntryFlag.SUFFIX_ARCH, EntryFlag.SUFFIX_FAMILY, EntryFlag.ZSTD)
)


class Compression(Enum):
    """How the payload of an entry is stored."""

    NONE = "none"
    LZ4 = "lz4"
    ZSTD = "zstd"


class SubEntry(NamedTuple):
    """One cubin inside a concatenated entry; ``offset`` and ``size`` are bytes of its plain stream.

    ``header_size`` is that of its sub-header; the sub-headers lie one after the other.
    """

    offset: int
    size: int
    sm: int
    flags: int
    header_size: int = 64

    @property
    def architecture(self) -> Architecture:
        """What the cubin was compiled for."""
        return architecture_of(self.sm, self.flags)


class Entry(NamedTuple):
    """One entry of a container.

    ``offset`` is bytes from the start of the source that the container was read from. A NamedTuple,
    since a library can hold 100,000 of them.
    """

    offset: int
    kind: int
    header_size: int
    padded_size: int
    compressed_size: int
    version: tuple[int, int]
    sm: int
    flags: int
    plain_size: int
    subs: tuple[SubEntry, ...] = ()

    @property
    def size(self) -> int:
        """Header and padded payload, in bytes."""
        return self.header_size + self.padded_size

    @property
    def payload_offset(self) -> int:
        """Where the payload starts, in the same terms as ``offset``."""
        return self.offset + self.header_size

    @property
    def payload_size(self) -> int:
        """Bytes of the payload as stored, without its padding."""
        return self.compressed_size or min(self.plain_size or self.padded_size, self.padded_size)

    @property
    def architecture(self) -> Architecture:
        """What the entry was compiled for."""
        return architecture_of(self.sm, self.flags)

    @property
    def is_known(self) -> bool:
        """Whether the kind is one that the driver's rule speaks of."""
        return self.kind in _KNOWN_KINDS

    @property
    def is_ptx(self) -> bool:
        """Whether the entry is PTX."""
        return self.kind == EntryKind.PTX

    @property
    def compression(self) -> Compression:
        """How the payload is stored."""
        if not self.compressed_size:
            return Compression.NONE
        return Compression.ZSTD if self.flags & _ZSTD else Compression.LZ4

    @property
    def label(self) -> str:
        """What reports call it: ``sm_90a``, ``compute_120``, ``lto_75``, ``kind 0x400``."""
        architecture = self.architecture
        if self.kind in (EntryKind.CUBIN, EntryKind.CUBIN_VARIANT):
            return architecture.name
        if self.kind in (EntryKind.PTX, EntryKind.RELOCATABLE_PTX):
            return architecture.ptx_name
        if self.kind == EntryKind.LTO_IR:
            return f"lto_{architecture.number}{architecture.suffix.value}"
        if self.kind == EntryKind.CONCATENATED:
            return "+".join(dict.fromkeys(sub.architecture.name for sub in self.subs)) or "concatenated"
        if self.kind == EntryKind.TILE_IR:
            return f"tile_{architecture.number}"
        return f"kind {self.kind:#x}"


_KNOWN_KINDS = frozenset(
    (EntryKind.PTX, EntryKind.CUBIN, EntryKind.CUBIN_VARIANT, EntryKind.CONCATENATED),
)


def architecture_of(sm: int, flags: int) -> Architecture:
    """Join the SM number with the suffix that the flags hold; the number alone confuses 90 with 90a."""
    if flags & _SUFFIX_ARCH:
        return Architecture(sm, Suffix.ARCH)
    if flags & _SUFFIX_FAMILY:
        return Architecture(sm, Suffix.FAMILY)
    return Architecture(sm)


@dataclass(frozen=True, slots=True)
class Container:
    """A fatbin container.

    ``offset`` and the entries' offsets are bytes from the start of the source that it was read from;
    ``size`` is header and entries, in bytes.
    """

    offset: int
    size: int
    header_size: int
    entries: tuple[Entry, ...]

    @property
    def end(self) -> int:
        """The first byte after the container."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Tiling:
    """A range that containers and zero padding cover without a byte left over.

    ``alignment`` is the largest power of two (8 to 4096) that divides the address of every
    container, counted from the address that the range starts at.
    """

    containers: tuple[Container, ...]
    size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Wrapper:
    """What ``__cudaRegisterFatBinary`` is given: ``address`` and ``target`` are virtual addresses."""

    address: int
    version: int
    target: int
