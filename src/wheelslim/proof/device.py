"""The device code of two libraries: each device runs the same bytes from both."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from wheelslim.errors import Place, VerifyError
from wheelslim.fatbin.model import Container
from wheelslim.proof.anew import prove_stored_anew, units
from wheelslim.proof.declared import NOTHING_DECLARED
from wheelslim.proof.embedded import EmbeddedPair, paired_embedded
from wheelslim.selection import choose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelslim.architecture import ComputeCapability
    from wheelslim.fatbin.model import Entry
    from wheelslim.proof.declared import Declared
    from wheelslim.proof.side import Side
    from wheelslim.selection import Choice
    from wheelslim.source import Source


@dataclass(frozen=True, slots=True)
class DeviceProof:
    """What was compared: containers, (container, device) pairs, kept entries."""

    containers: int
    choices: int
    entries: int


def prove_device(
    before: Side,
    after: Side,
    devices: Sequence[ComputeCapability],
    declared: Declared = NOTHING_DECLARED,
) -> DeviceProof:
    """Prove that every entry is one of the original's, and that each device chooses the same ones.

    Containers that were declared to be emptied may be; with entries declared to be stored anew,
    their plain payloads are compared where their bytes differ.

    Raises:
        VerifyError: the first promise that does not hold, with its place in the slimmed file.
    """
    pairs = list(_paired(before, after))
    chooser = _Chooser(devices)
    entries = choices = 0
    for old, new in pairs:
        offset = old.source.base - before.source.base + old.container.offset
        if not new.container.entries and offset in declared.emptied:
            continue
        try:
            entries += _compare_entries(old, new)
            choices += _compare_choices(old, new, chooser)
        except VerifyError:
            if not declared.stored_anew:
                raise
            entries += _compare_anew(old, new, devices)
            choices += len(devices)
    count = len(pairs)
    for pair in paired_embedded(before, after):
        old, new = _embedded(pair, before, after)
        entries += _compare_entries(old, new)
        choices += _compare_choices(old, new, chooser)
        count += 1
    return DeviceProof(count, choices, entries)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A container with its virtual address and the source that its offsets count in."""

    container: Container
    address: int
    source: Source
    section: str


def _containers(side: Side) -> dict[int, _Placed]:
    placed = {}
    for part in side.library.device:
        source = side.source.part(part.section.sh_offset, part.section.sh_size)
        for container in part.tiling.containers:
            address = part.address(container)
            placed[address] = _Placed(container, address, source, part.section.name)
    return placed


def _paired(before: Side, after: Side) -> Iterator[tuple[_Placed, _Placed]]:
    """Pair containers by the wrapper that names them, and the others by their address."""
    old_by_address, new_by_address = _containers(before), _containers(after)
    old_wrappers, new_wrappers = before.library.wrappers, after.library.wrappers
    for old, new in zip_longest(old_wrappers, new_wrappers):
        if old is None or new is None or (old.address, old.version) != (new.address, new.version):
            raise VerifyError(
                "the wrappers differ",
                expected="the end"
                if old is None
                else f"a wrapper of version {old.version} at {old.address:#x}",
                found="the end" if new is None else f"one of version {new.version} at {new.address:#x}",
            )
    named_old = {wrapper.target for wrapper in old_wrappers}
    named_new = {wrapper.target for wrapper in new_wrappers}
    partner: dict[int, int] = {}
    for old, new in zip(old_wrappers, new_wrappers, strict=True):
        if partner.setdefault(old.target, new.target) != new.target:
            raise VerifyError(f"wrappers of one container at {old.target:#x} now name different ones")
    partner.update((address, address) for address in old_by_address if address not in named_old)
    for old_address, new_address in sorted(partner.items()):
        if old_address not in old_by_address:
            continue  # A wrapper of a section that is not understood: it is compared as host bytes.
        if new_address not in new_by_address:
            raise VerifyError(
                f"the container that lay at {old_address:#x} is gone",
                expected=f"a container at address {new_address:#x}",
                found="none",
            )
        yield old_by_address[old_address], new_by_address[new_address]
    strangers = set(new_by_address) - set(partner.values())
    if strangers:
        raise VerifyError(f"a container at {min(strangers):#x} has no counterpart in the original")
    order_old = [address for address in old_by_address if address in named_old]
    order_new = [address for address in new_by_address if address in named_new]
    if [partner[address] for address in order_old] != order_new:
        raise VerifyError("the containers are in another order")


def _embedded(pair: EmbeddedPair, before: Side, after: Side) -> tuple[_Placed, _Placed]:
    """Bring an embedded pair into the form of the others; zeros are a container without entries."""
    section = pair.region.section
    source = before.source.part(section.sh_offset, section.sh_size)
    nothing = Container(0, 0, 0, ())
    return (
        _Placed(pair.old, pair.address, source, section.name),
        _Placed(pair.new or nothing, pair.address, after.source, section.name),
    )


def _compare_entries(old: _Placed, new: _Placed) -> int:
    """Every entry of the slimmed container is one of the original's, byte for byte and in order."""
    candidates = iter(old.container.entries)
    for entry in new.container.entries:
        for candidate in candidates:
            if _same_header(candidate, entry) and _same_bytes(old, candidate, new, entry):
                break
        else:
            raise VerifyError(
                f"an entry for {entry.label} is none of the original's entries",
                place=Place(section=new.section, offset=entry.offset),
                hint=f"The container lay at address {old.address:#x} before",
            )
    return len(new.container.entries)


def _compare_anew(old: _Placed, new: _Placed, devices: Sequence[ComputeCapability]) -> int:
    place = Place(section=new.section, offset=new.container.offset)
    before, after = (list(units(one.source, one.container)) for one in (old, new))
    return prove_stored_anew(before, after, devices, place)


def _same_header(old: Entry, new: Entry) -> bool:
    return old._replace(offset=0) == new._replace(offset=0)


def _same_bytes(old: _Placed, old_entry: Entry, new: _Placed, new_entry: Entry) -> bool:
    pairs = zip(
        old.source.blocks(old_entry.offset, old_entry.size),
        new.source.blocks(new_entry.offset, new_entry.size),
        strict=True,
    )
    return all(one == other for one, other in pairs)


class _Chooser:
    """Asks the driver's rule once for all containers whose entries are of the same kinds."""

    def __init__(self, devices: Sequence[ComputeCapability]) -> None:
        self.devices = devices
        self._known: dict[tuple[object, ...], tuple[Choice, ...]] = {}

    def choices(self, entries: Sequence[Entry]) -> tuple[Choice, ...]:
        """What each device chooses of ``entries``."""
        kinds = tuple((entry.kind, entry.sm, entry.flags, entry.subs) for entry in entries)
        known = self._known.get(kinds)
        if known is None:
            known = self._known[kinds] = tuple(choose(entries, device) for device in self.devices)
        return known


def _compare_choices(old: _Placed, new: _Placed, chooser: _Chooser) -> int:
    """Each device chooses the same entries, ties included; their bytes are compared already."""
    before, after = old.container.entries, new.container.entries
    pairs = zip(chooser.devices, chooser.choices(before), chooser.choices(after), strict=True)
    for device, was, now in pairs:
        wanted = [before[index]._replace(offset=0) for index in was.entries]
        found = [after[index]._replace(offset=0) for index in now.entries]
        if wanted != found:
            raise VerifyError(
                f"sm_{device.number} no longer runs what it ran before",
                place=Place(section=new.section, offset=new.container.offset),
                expected=was.text,
                found=now.text,
                hint=f"The container lay at address {old.address:#x} before",
            )
    return len(chooser.devices)
