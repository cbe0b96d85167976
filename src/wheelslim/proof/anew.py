"""Entries that are stored anew, compared by what they hold: header fields, and plain payloads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from wheelslim.errors import FatbinFormatError, Place, VerifyError
from wheelslim.fatbin.layout import CONCATENATED_HEAD, ENTRY, EntryFlag, EntryKind
from wheelslim.fatbin.model import Entry
from wheelslim.fatbin.payload import read_payload
from wheelslim.selection import choose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelslim.architecture import ComputeCapability
    from wheelslim.fatbin.model import Container
    from wheelslim.source import Source

_STORAGE = int(EntryFlag.LZ4 | EntryFlag.ZSTD)
_SIZES = slice(4, 20)
_PLAIN_SIZE = slice(56, 64)
_FLAGS = slice(40, 48)


@dataclass(frozen=True)
class Unit:
    """One cubin or PTX, apart or inside a concatenated entry.

    ``entry`` is what the driver's rule looks at, ``facts`` the header without what storage decides.
    """

    source: Source = field(repr=False)
    holder: Entry
    entry: Entry
    facts: bytes
    part: tuple[int, int] | None = None

    def digest(self) -> str:
        """Return the SHA-256 of the plain payload; PTX counts without the zeros at its end."""
        plain = read_payload(self.source, self.holder)
        if self.part is not None:
            start, size = self.part
            plain = plain[start : start + size]
        if self.entry.is_ptx:
            plain = plain.rstrip(b"\0")
        return hashlib.sha256(plain).hexdigest()

    def same_storage(self, other: Unit) -> bool:
        """Whether both lie in entries that are the same byte for byte."""
        if self.holder._replace(offset=0) != other.holder._replace(offset=0):
            return False
        pairs = zip(
            self.source.blocks(self.holder.offset, self.holder.size),
            other.source.blocks(other.holder.offset, other.holder.size),
            strict=True,
        )
        return all(one == two for one, two in pairs)

    def same(self, other: Unit) -> bool:
        """Whether both are the same code.

        Raises:
            FatbinFormatError: a payload cannot be read.
        """
        if self.facts != other.facts:
            return False
        if self.part == other.part and self.same_storage(other):
            return True
        return self.digest() == other.digest()


def units(source: Source, container: Container) -> Iterator[Unit]:
    """Take a container's entries apart; offsets count from the start of ``source``."""
    for entry in container.entries:
        header = source.read(entry.offset, entry.header_size)
        if entry.kind != EntryKind.CONCATENATED:
            yield Unit(source, entry, entry._replace(flags=entry.flags & ~_STORAGE), _facts(header))
            continue
        at = ENTRY.size + CONCATENATED_HEAD.size
        for sub in entry.subs:
            facts = _facts(header[at : at + sub.header_size])
            at += sub.header_size
            plain = Entry(
                entry.offset,
                EntryKind.CUBIN,
                sub.header_size,
                0,
                0,
                entry.version,
                sub.sm,
                sub.flags & ~_STORAGE,
                0,
            )
            yield Unit(source, entry, plain, facts, (sub.offset, sub.size))


def prove_stored_anew(
    old: Sequence[Unit], new: Sequence[Unit], devices: Sequence[ComputeCapability], place: Place
) -> int:
    """Prove that ``new`` holds code of ``old`` in its order, and all that each device chooses.

    Returns the number of units compared.

    Raises:
        VerifyError: it does not, or a payload cannot be read.
    """
    try:
        partner: dict[int, int] = {}
        position = 0
        for index, unit in enumerate(new):
            while position < len(old) and not old[position].same(unit):
                position += 1
            if position == len(old):
                raise VerifyError(
                    f"an entry for {unit.entry.label} holds none of the original's code",
                    place=replace(place, offset=unit.holder.offset),
                )
            partner[index] = position
            position += 1
    except FatbinFormatError as error:
        raise VerifyError(f"a payload cannot be compared: {error}", place=place) from error
    for device in devices:
        was = choose([unit.entry for unit in old], device)
        now = choose([unit.entry for unit in new], device)
        if was.entries != tuple(partner[index] for index in now.entries):
            raise VerifyError(
                f"sm_{device.number} no longer runs what it ran before",
                place=place,
                expected=was.text,
                found=now.text,
            )
    return len(new)


def _facts(header: bytes) -> bytes:
    """Blank the fields that say how an entry is stored: sizes, compression flags, plain size."""
    facts = bytearray(header)
    facts[_SIZES] = bytes(16)
    facts[_PLAIN_SIZE] = bytes(8)
    flags = int.from_bytes(facts[_FLAGS], "little") & ~_STORAGE
    facts[_FLAGS] = flags.to_bytes(8, "little")
    return bytes(facts)
