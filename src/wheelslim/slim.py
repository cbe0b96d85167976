"""One library and a request in; the slimmed library as pieces, with its account, out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.account import (
    EmbeddedAccount,
    LibraryAccount,
    Method,
    Outcome,
    Share,
    TargetCoverage,
    account_of,
    shares,
)
from wheelslim.elf.cut import plan_cut
from wheelslim.elf.filemap import FileMap
from wheelslim.elf.obstacle import obstacle
from wheelslim.elf.strip import NOTHING_STRIPPED, StripMode, plan_strip
from wheelslim.embedded import plan_embedded, served_elsewhere
from wheelslim.fatbin.writer import container_pieces
from wheelslim.library import read_library
from wheelslim.pieces import Copy, total_size
from wheelslim.placement import place
from wheelslim.retarget import retargeted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wheelslim.elf.filemap import Overlay
    from wheelslim.elf.freerun import FreeRun
    from wheelslim.fatbin.model import Container
    from wheelslim.library import DeviceSection
    from wheelslim.pieces import Piece
    from wheelslim.plan import ContainerPlan, Planner
    from wheelslim.source import Source

_EMBEDDED_NOTE = "device code outside .nv_fatbin was pruned too: try it on your GPU before you rely on it"


__all__ = [
    "DEFAULT_OPTIONS",
    "EmbeddedAccount",
    "LibraryAccount",
    "LibraryOptions",
    "Method",
    "Share",
    "SlimLibrary",
    "TargetCoverage",
    "shares",
    "slim_library",
]


@dataclass(frozen=True)
class LibraryOptions:
    """What to do to a library beyond the driver's rule.

    ``embedded`` prunes containers outside the device sections too, where they lie.
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
    sections = [_new_contents(source, part, planner, options) for part in library.device]
    plans = tuple(plan for section in sections for plan in section.plans)
    embedded = plan_embedded(source, library.elf, planner) if options.embedded else None
    elsewhere = served_elsewhere(source, library.elf, planner, plans) if plans else ()
    strip = plan_strip(source, library.elf, options.strip)
    reason = obstacle(library.elf)
    notes = strip.notes
    if reason is not None and strip.gone:
        strip, notes = NOTHING_STRIPPED, (f"symbols and debug information stay: {reason}",)

    def done(pieces: tuple[Piece, ...] | None, size: int, method: Method) -> SlimLibrary:
        account = embedded.account if embedded is not None else None
        stripped = strip.size(library.elf) if pieces is not None else 0
        outcome = Outcome(size, method, notes, stripped, account, elsewhere)
        return SlimLibrary(pieces, account_of(library, plans, planner, outcome), plans)

    overlays: list[Overlay] = []
    runs: list[FreeRun] = []
    if any(section.changed for section in sections):
        placements = [
            place(part, section.contents, in_place=reason is not None)
            for part, section in zip(library.device, sections, strict=True)
        ]
        moved = {old: new for placement in placements for old, new in placement.moved.items()}
        overlays = [overlay for placement in placements for overlay in placement.overlays]
        overlays.extend(retargeted(source, library, moved))
        runs = [run for placement in placements for run in placement.runs]
    if embedded is not None and embedded.overlays:
        overlays.extend(embedded.overlays)
        runs.extend(embedded.runs)
        notes = (*notes, _EMBEDDED_NOTE)
    if not overlays and not strip.gone:
        return done(None, source.size, Method.NONE)
    if reason is not None:
        notes = (f"compacted in place, the file keeps its size: {reason}", *notes)
        return done(tuple(FileMap(source.size, ()).pieces(overlays)), source.size, Method.IN_PLACE)
    cut = plan_cut(library.elf, overlays, runs, library.dynamic, strip)
    if not overlays and cut.size >= source.size:
        return done(None, source.size, Method.NONE)
    if cut.shortfall:
        notes = (cut.shortfall, *notes)
    return done(cut.pieces, cut.size, Method.CUT)


@dataclass(frozen=True)
class _NewSection:
    """What becomes of the containers of a section: a plan and the new content of each, as file ranges."""

    plans: tuple[ContainerPlan, ...]
    contents: tuple[tuple[Piece, ...], ...]
    changed: bool


def _new_contents(
    source: Source, part: DeviceSection, planner: Planner, options: LibraryOptions
) -> _NewSection:
    """Plan each container of a section, and describe its new content."""
    base = part.section.sh_offset
    section = source.part(base, part.section.sh_size)
    plans: list[ContainerPlan] = []
    contents: list[tuple[Piece, ...]] = []
    changed = False
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
        changed = changed or pieces != [Copy(base + container.offset, container.size)]
    return _NewSection(tuple(plans), tuple(contents), changed)
