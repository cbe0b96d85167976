"""One library and a request in; the slimmed library as pieces, with its account, out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from wheelslim.elf.cut import obstacle, plan_cut
from wheelslim.elf.filemap import Overlay
from wheelslim.elf.strip import StripMode
from wheelslim.fatbin.writer import container_pieces
from wheelslim.library import read_library
from wheelslim.pieces import Copy, Data, total_size
from wheelslim.placement import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wheelslim.fatbin.model import Container, Entry
    from wheelslim.library import DeviceSection, Library
    from wheelslim.pieces import Piece
    from wheelslim.plan import ContainerPlan, Planner
    from wheelslim.selection import Choice, Coverage
    from wheelslim.source import Source

_PATCH_WINDOW = 4096
_WORD = 8


class Method(Enum):
    """How a library was made smaller."""

    CUT = "cut"
    """Containers compacted, freed pages cut out of the file."""
    IN_PLACE = "in place"
    """Each container compacted where it lies, the rest zero: smaller only once compressed."""
    NONE = "unchanged"


@dataclass(frozen=True)
class LibraryOptions:
    """What to do to a library beyond the driver's rule.

    ``veto`` is asked for each container that would keep something: True empties it. ``rewrite``
    may give a container's new content in place of its kept entries (their indexes are its last
    argument), or None for the usual way. Both get the source that the container's offsets count
    from; ranges that ``rewrite`` copies count from there too.
    """

    strip: StripMode = StripMode.NONE
    embedded: bool = False
    veto: Callable[[Source, Container], bool] | None = None
    rewrite: Callable[[Source, Container, tuple[int, ...]], Sequence[Piece] | None] | None = None


DEFAULT_OPTIONS = LibraryOptions()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The size of the new file in bytes, how it came about, and remarks."""

    size: int
    method: Method
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """Device code of one architecture: how many entries, and their bytes (header + padded payload)."""

    entries: int
    size: int


@dataclass(frozen=True, slots=True)
class TargetCoverage:
    """How the containers of a library serve one target: coverage → number of containers.

    ``lost`` counts those that serve it otherwise than before; not those that a veto emptied.
    """

    target: str
    before: dict[Coverage, int]
    after: dict[Coverage, int]
    lost: int


@dataclass(frozen=True)
class LibraryAccount:
    """What became of one library. Sizes in bytes; shares by label (``sm_90a``, ``compute_120``)."""

    size_before: int
    size_after: int
    method: Method
    containers: int
    before: dict[str, Share]
    after: dict[str, Share]
    coverage: tuple[TargetCoverage, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SlimLibrary:
    """The new content, or None where the library stays as it is, and the account."""

    pieces: tuple[Piece, ...] | None
    account: LibraryAccount
    plans: tuple[ContainerPlan, ...] = ()


def slim_library(source: Source, planner: Planner, options: LibraryOptions = DEFAULT_OPTIONS) -> SlimLibrary:
    """Plan the slimmed library; reads headers only (``options`` may read more), writes nothing.

    Raises:
        ElfFormatError: the file is no well-formed ELF64 little-endian file.
    """
    library = read_library(source)
    plans: list[ContainerPlan] = []
    contents: list[list[tuple[Piece, ...]]] = []
    for part in library.device:
        part_plans, part_contents = _new_contents(source, part, planner, options)
        plans.extend(part_plans)
        contents.append(part_contents)
    flat = tuple(plans)
    unchanged = all(
        content == (Copy(part.section.sh_offset + container.offset, container.size),)
        for part, part_contents in zip(library.device, contents, strict=True)
        for container, content in zip(part.tiling.containers, part_contents, strict=True)
    )
    if unchanged:
        return SlimLibrary(None, _account(library, flat, planner, Outcome(source.size, Method.NONE)), flat)
    reason = obstacle(library.elf)
    placements = [
        place(part, part_contents, in_place=reason is not None)
        for part, part_contents in zip(library.device, contents, strict=True)
    ]
    overlays = [overlay for placement in placements for overlay in placement.overlays]
    if reason is not None:
        note = f"compacted in place, the file keeps its size: {reason}"
        account = _account(library, flat, planner, Outcome(source.size, Method.IN_PLACE, (note,)))
        return SlimLibrary(_overlaid(source.size, overlays), account, flat)
    patches: dict[int, bytes] = {}
    for part, placement in zip(library.device, placements, strict=True):
        patches.update(_retargeted(source, library, part, placement.moved))
    # All at once: the relocations of two sections lie among one another.
    overlays.extend(_patched(source, patches))
    runs = [run for placement in placements for run in placement.runs]
    cut = plan_cut(library.elf, overlays, runs, library.dynamic)
    notes = (cut.shortfall,) if cut.shortfall else ()
    return SlimLibrary(
        cut.pieces, _account(library, flat, planner, Outcome(cut.size, Method.CUT, notes)), flat
    )


def _new_contents(
    source: Source, part: DeviceSection, planner: Planner, options: LibraryOptions
) -> tuple[list[ContainerPlan], list[tuple[Piece, ...]]]:
    """Plan each container of a section, and describe its new content as pieces of the file."""
    base = part.section.sh_offset
    section = source.part(base, part.section.sh_size)
    plans: list[ContainerPlan] = []
    contents: list[tuple[Piece, ...]] = []
    for container in part.tiling.containers:
        plan = planner.plan(container)
        if options.veto is not None and plan.kept and options.veto(section, container):
            plan = plan.vetoed()
        pieces = container_pieces(container, plan.kept, base)
        if options.rewrite is not None and plan.kept:
            rewritten = options.rewrite(section, container, plan.kept)
            if rewritten is not None and total_size(rewritten) < total_size(pieces):
                pieces = [Copy(base + p.offset, p.size) if isinstance(p, Copy) else p for p in rewritten]
        plans.append(plan)
        contents.append(tuple(pieces))
    return plans, contents


def _overlaid(size: int, overlays: Iterable[Overlay]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    position = 0
    for overlay in sorted(overlays, key=lambda item: item.offset):
        pieces.append(Copy(position, overlay.offset - position))
        pieces.extend(overlay.pieces)
        position = overlay.offset + total_size(overlay.pieces)
    pieces.append(Copy(position, size - position))
    return tuple(piece for piece in pieces if piece.size)


def _retargeted(
    source: Source, library: Library, part: DeviceSection, moved: dict[int, int]
) -> dict[int, bytes]:
    """Point the wrappers at the new places: the relocation's addend, and the word in the file.

    Returns new words by file offset.

    Linkers write the address into the word too; where they did, it follows. With RELR relocations
    the word is all there is.
    """
    patches: dict[int, bytes] = {}
    for old, new in moved.items():
        reference = part.wrapped[old]
        value = new.to_bytes(_WORD, "little")
        if reference.addend_offset is not None:
            patches[reference.addend_offset] = value
        slot = library.elf.offset_of(reference.slot, _WORD)
        if slot is not None and int.from_bytes(source.read(slot, _WORD), "little") == old:
            patches[slot] = value
    return patches


def _patched(source: Source, patches: dict[int, bytes]) -> list[Overlay]:
    """Join patches that lie close together, so that 100,000 of them do not become as many pieces."""
    overlays: list[Overlay] = []
    group: list[int] = []
    for offset in [*sorted(patches), None]:
        if group and (offset is None or offset - group[0] > _PATCH_WINDOW):
            start, end = group[0], group[-1] + _WORD
            data = bytearray(source.read(start, end - start))
            for place_ in group:
                data[place_ - start : place_ - start + _WORD] = patches[place_]
            overlays.append(Overlay(start, (Data(bytes(data)),)))
            group = []
        if offset is not None:
            group.append(offset)
    return overlays


def _account(
    library: Library,
    plans: Sequence[ContainerPlan],
    planner: Planner,
    outcome: Outcome,
) -> LibraryAccount:
    pairs = list(zip(library.containers, plans, strict=True))
    devices = planner.request.devices
    return LibraryAccount(
        size_before=library.elf.size,
        size_after=outcome.size,
        method=outcome.method,
        containers=len(pairs),
        before=shares(entry for container, _ in pairs for entry in container.entries),
        after=shares(container.entries[index] for container, plan in pairs for index in plan.kept),
        coverage=tuple(
            TargetCoverage(
                target=device.name,
                before=_counted(plan.before[index] for plan in plans),
                after=_counted(plan.after[index] for plan in plans),
                lost=sum(index in plan.lost for plan in plans if not plan.is_vetoed),
            )
            for index, device in enumerate(devices)
        ),
        notes=(*library.notes, *outcome.notes),
    )


def shares(entries: Iterable[Entry]) -> dict[str, Share]:
    """Sum entries by label, sorted by label's architecture."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    order: dict[str, tuple[int, str]] = {}
    for entry in entries:
        label = entry.label
        sizes[label] += entry.size
        counts[label] += 1
        order[label] = (entry.sm, label)
    return {label: Share(counts[label], sizes[label]) for label in sorted(sizes, key=order.__getitem__)}


def _counted(choices: Iterable[Choice]) -> dict[Coverage, int]:
    return dict(Counter(choice.coverage for choice in choices))
