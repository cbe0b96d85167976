"""Containers outside the device sections: each at its old address, with what the devices run, then zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.elf.layout import SegmentFlag
from wheelslim.errors import FatbinFormatError, Place, VerifyError
from wheelslim.fatbin.layout import CONTAINER_HEADER, CONTAINER_MAGIC_BYTES
from wheelslim.fatbin.reader import read_container
from wheelslim.proof.image import AddressRange
from wheelslim.source import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.embedded import EmbeddedRegion
    from wheelslim.fatbin.model import Container
    from wheelslim.proof.side import Side

_PADDING_MAX = 256


@dataclass(frozen=True, slots=True)
class EmbeddedPair:
    """A container of the original and its counterpart, or None where zeros took its place.

    Offsets of ``old`` count from its section's start, those of ``new`` from the start of the file.
    """

    region: EmbeddedRegion
    old: Container
    new: Container | None
    address: int


def paired_embedded(before: Side, after: Side) -> Iterator[EmbeddedPair]:
    """Pair the original's embedded containers with what lies at their addresses.

    Raises:
        VerifyError: something else than a container or zeros, or no zeros behind a shorter one.
    """
    for region in before.regions:
        for old in region.containers:
            address = region.address(old)
            new = _container_at(after, address, region, old)
            rest = address + (new.size if new is not None else 0)
            _check_zeros(after, rest, address + old.size, region)
            yield EmbeddedPair(region, old, new, address)


def embedded_ranges(before: Side, after: Side) -> Iterator[AddressRange]:
    """Yield the addresses that embedded containers take, with the padding between neighbours.

    They may be mapped otherwise than before: their content is compared by ``paired_embedded``.

    Raises:
        VerifyError: padding that is not zero any more, or other permissions, but for execution.
    """
    for region in before.regions:
        ends = [container.offset for container in region.containers[1:]] + [region.section.sh_size]
        for container, following in zip(region.containers, ends, strict=True):
            start = region.address(container)
            end = start + container.size
            if following - container.end <= _PADDING_MAX:
                at = region.section.sh_offset + container.end
                if not any(before.source.read(at, following - container.end)):
                    _check_zeros(after, end, end + following - container.end, region)
                    end += following - container.end
            _check_flags(before, after, AddressRange(start, end), region)
            yield AddressRange(start, end)


def _container_at(after: Side, address: int, region: EmbeddedRegion, old: Container) -> Container | None:
    offset = after.elf.offset_of(address, CONTAINER_HEADER.size)
    if offset is None or after.source.read(offset, 4) != CONTAINER_MAGIC_BYTES:
        return None
    try:
        new = read_container(after.source, offset)
    except FatbinFormatError as error:
        raise _fault(region, address, "a container", error.what) from error
    if new.size > old.size:
        raise _fault(region, address, f"at most {old.size} bytes", f"{new.size} bytes")
    if after.elf.offset_of(address, new.size) is None:
        raise _fault(region, address, f"{new.size} bytes of the file", "a hole")
    return new


def _check_zeros(after: Side, start: int, end: int, region: EmbeddedRegion) -> None:
    """Check that a process reads zeros at ``[start, end)``."""
    position = start
    while position < end:
        home = next((load for load in after.elf.loads if load.p_vaddr <= position < load.address_end), None)
        if home is None or not home.p_flags & SegmentFlag.R:
            raise _fault(region, position, "readable zeros", "nothing")
        in_file = home.p_vaddr + home.p_filesz - position
        if in_file > 0:
            step = min(end - position, in_file, BLOCK)
            if any(after.source.read(home.p_offset + position - home.p_vaddr, step)):
                raise _fault(region, position, "zeros", "other bytes")
        else:
            step = min(end, home.address_end) - position
        position += step


def _check_flags(before: Side, after: Side, part: AddressRange, region: EmbeddedRegion) -> None:
    old = next(load.p_flags for load in before.elf.loads if load.p_vaddr <= part.start < load.address_end)
    for load in after.elf.loads:
        overlaps = load.p_vaddr < part.end and load.address_end > part.start
        if overlaps and load.p_flags not in (old, old & ~int(SegmentFlag.X)):
            raise _fault(region, part.start, f"permissions {old}", f"{load.p_flags}")


def _fault(region: EmbeddedRegion, address: int, expected: str, found: str) -> VerifyError:
    return VerifyError(
        f"embedded device code at address {address:#x} is not what it was",
        place=Place(section=region.section.name, offset=address - region.section.sh_addr),
        expected=expected,
        found=found,
    )
