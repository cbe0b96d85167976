"""Two files as the loader sees them: the same bytes at every virtual address, but for named ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.elf.layout import PAGE_SIZE, SegmentFlag
from wheelslim.errors import Place, VerifyError
from wheelslim.source import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wheelslim.elf.model import ElfFile, Segment
    from wheelslim.source import Source


@dataclass(frozen=True, order=True, slots=True)
class AddressRange:
    """Virtual addresses ``[start, end)``."""

    start: int
    end: int


def check_loads(elf: ElfFile) -> None:
    """Check the PT_LOADs of a file as a loader would.

    Raises:
        VerifyError: out of order, overlapping, past the end of the file, or not congruent.
    """
    page = PAGE_SIZE.get(elf.header.e_machine, 1)
    previous = 0
    for load in elf.loads:
        if load.p_vaddr < previous:
            raise _fault("PT_LOADs overlap or are out of order", load, f"address from {previous:#x}", "less")
        previous = load.address_end
        align = max(load.p_align, 1)
        if (load.p_vaddr - load.p_offset) % align:
            found = f"offset {load.p_offset:#x}, address {load.p_vaddr:#x}"
            raise _fault("a PT_LOAD is not aligned", load, f"congruence modulo {align:#x}", found)
        if align < page and align > 1:
            raise _fault("a PT_LOAD is aligned to less than a page", load, f"{page:#x}", f"{align:#x}")


def compare_images(
    before: tuple[Source, ElfFile],
    after: tuple[Source, ElfFile],
    except_for: Iterable[AddressRange],
    may_lose: Iterable[AddressRange],
) -> int:
    """Compare what is mapped; returns the bytes found equal.

    Bytes in ``except_for`` are compared elsewhere. Ranges in ``may_lose`` may be mapped differently
    or not at all.

    Raises:
        VerifyError: the first byte, size or permission that differs.
    """
    exempt = merged([*except_for, *may_lose])
    losable = merged(may_lose)
    compared = 0
    for load in before[1].loads:
        whole = AddressRange(load.p_vaddr, load.p_vaddr + load.p_filesz)
        for part in subtract(whole, exempt):
            compared += _compare_bytes(before, after, load, part)
        zeros = AddressRange(whole.end, load.address_end)
        for part in subtract(zeros, exempt):
            _compare_zeros(after[1], load, part)
        for part in subtract(AddressRange(load.p_vaddr, load.address_end), losable):
            _compare_flags(after[1], load, part)
    return compared


def merged(ranges: Iterable[AddressRange]) -> list[AddressRange]:
    """Sort ranges and join those that touch."""
    result: list[AddressRange] = []
    for item in sorted(item for item in ranges if item.end > item.start):
        if result and item.start <= result[-1].end:
            result[-1] = AddressRange(result[-1].start, max(result[-1].end, item.end))
        else:
            result.append(item)
    return result


def subtract(whole: AddressRange, holes: list[AddressRange]) -> Iterator[AddressRange]:
    """Yield what is left of ``whole`` without the sorted, disjoint ``holes``."""
    position = whole.start
    for hole in holes:
        if hole.end <= position or hole.start >= whole.end:
            continue
        if hole.start > position:
            yield AddressRange(position, hole.start)
        position = hole.end
    if position < whole.end:
        yield AddressRange(position, whole.end)


def _compare_bytes(
    before: tuple[Source, ElfFile], after: tuple[Source, ElfFile], load: Segment, part: AddressRange
) -> int:
    address = part.start
    stayed = load in after[1].loads  # Where PT_LOADs overlap, each is compared with itself.
    while address < part.end:
        home = load if stayed else after[1].load_at(address)
        if home is None:
            raise _fault("host bytes are gone", load, f"file bytes at address {address:#x}", "none")
        step = min(BLOCK, part.end - address, home.p_vaddr + home.p_filesz - address)
        old = before[0].read(load.p_offset + address - load.p_vaddr, step)
        new = after[0].read(home.p_offset + address - home.p_vaddr, step)
        if old != new:
            where = next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
            raise VerifyError(
                f"host byte at address {address + where:#x} differs",
                place=Place(offset=load.p_offset + address + where - load.p_vaddr),
                expected=f"{old[where]:#04x}",
                found=f"{new[where]:#04x}",
            )
        address += step
    return part.end - part.start


def _compare_zeros(after: ElfFile, load: Segment, part: AddressRange) -> None:
    """Check that zero-initialised memory is still there, and still zero."""
    left = [part]
    for segment in after.loads:
        zeros = AddressRange(segment.p_vaddr + segment.p_filesz, segment.address_end)
        left = [rest for item in left for rest in subtract(item, [zeros] if zeros.end > zeros.start else [])]
    if left:
        raise _fault("zero-initialised memory is gone", load, f"zeros at {left[0].start:#x}", "none")


def _compare_flags(after: ElfFile, load: Segment, part: AddressRange) -> None:
    if load in after.loads:
        return
    for segment in after.loads:
        overlaps = segment.p_vaddr < part.end and segment.address_end > part.start
        if overlaps and segment.p_flags != load.p_flags:
            raise _fault("permissions differ", load, _flags(load), _flags(segment))


def _flags(segment: Segment) -> str:
    return "".join(flag.name or "" for flag in SegmentFlag if segment.p_flags & flag) or "none"


def _fault(what: str, load: Segment, expected: str, found: str) -> VerifyError:
    return VerifyError(what, place=Place(offset=load.p_offset), expected=expected, found=found)
