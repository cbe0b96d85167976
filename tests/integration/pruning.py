"""Prune one library into a file, and what must hold of it whatever its layout."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judges import binutils, readelf
from wheelslim.pieces import stream
from wheelslim.plan import Planner, PtxPolicy, Request
from wheelslim.proof.declared import Declared
from wheelslim.proof.library import verify_library
from wheelslim.slim import DEFAULT_OPTIONS, LibraryAccount, LibraryOptions, slim_library
from wheelslim.source import Source
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

    from judges.loader import Entry, Loader, Registered

PTX, CUBIN, VARIANT = 1, 2, 0x10
SUFFIX_A, SUFFIX_F = 0x100000, 0x200000
FAMILIES = ({100, 103}, {110}, {120, 121})


@dataclass(frozen=True)
class Pruned:
    """The pruned file; ``changed`` is False where wheelslim left the library as it is."""

    path: Path
    changed: bool
    account: LibraryAccount


def prune(
    library: Path,
    target: Path,
    words: str | Request,
    options: LibraryOptions = DEFAULT_OPTIONS,
    *,
    ptx: str = "auto",
) -> Pruned:
    """Write the pruned library to ``target``, a copy where nothing changes, and prove it.

    With the options that change device code for other reasons the proof is left to the caller.
    """
    request = Request(parse_targets(words), PtxPolicy(ptx)) if isinstance(words, str) else words
    planner = Planner(request)
    with library.open("rb") as file:
        source = Source.of_file(file.fileno())
        slim = slim_library(source, planner, options)
        with target.open("wb") as output:
            output.writelines(source.blocks() if slim.pieces is None else stream(slim.pieces, source))
    target.chmod(0o755)
    assert target.stat().st_size == slim.account.size_after
    assert slim.account.size_before == library.stat().st_size
    if options.veto is None and options.rewrite is None and ptx != "none":
        prove(library, target, request, options)
    return Pruned(target, slim.pieces is not None, slim.account)


def prove(library: Path, pruned: Path, request: Request, options: LibraryOptions) -> None:
    """Let wheelslim verify what it wrote, with no more allowed than was asked for."""
    devices = [device.capability for device in request.devices if device.capability is not None]
    declared = Declared(strip=options.strip, embedded=options.embedded)
    with library.open("rb") as old, pruned.open("rb") as new:
        before, after = Source.of_file(old.fileno()), Source.of_file(new.fileno())
        verify_library(before, after, devices, declared)


def runs(entry: Entry, sm: int) -> bool:
    """NVIDIA's compatibility guides once more, in the test's own words."""
    if entry.flags & SUFFIX_A:
        return entry.sm == sm
    if entry.flags & SUFFIX_F:
        return entry.sm <= sm and any({entry.sm, sm} <= family for family in FAMILIES)
    return entry.sm <= sm and (entry.kind == PTX or entry.sm // 10 == sm // 10)


def wanted(entries: tuple[Entry, ...], devices: list[int]) -> tuple[Entry, ...]:
    """The entries that must stay for desktop devices: the nearest cubins, else the nearest PTX."""
    kept: set[int] = {index for index, entry in enumerate(entries) if entry.kind not in (PTX, CUBIN, VARIANT)}
    for sm in devices:
        for kind in (CUBIN, VARIANT, PTX):
            able = [i for i, entry in enumerate(entries) if entry.kind == kind and runs(entry, sm)]
            if able:
                best = max(entries[index].sm for index in able)
                kept |= {index for index in able if entries[index].sm == best}
                break
    return tuple(entries[index] for index in sorted(kept))


def check_registered(
    before: tuple[Registered, ...], after: tuple[Registered, ...], devices: list[int]
) -> None:
    """The runtime is handed the same containers in the same order, each with exactly what is wanted."""
    assert [one.version for one in after] == [one.version for one in before]
    for old, new in zip(before, after, strict=True):
        assert new.entries == wanted(old.entries, devices)
        assert new.prelinked == tuple(wanted(one, devices) for one in old.prelinked)


def check_library(library: Path, pruned: Path, devices: list[int], loader: Loader, *functions: str) -> None:
    """Readelf finds no fault, the library loads, its host code answers, and its device code is right."""
    readelf.sound(pruned)
    before, after = (loader.load(path, "answer", *functions) for path in (library, pruned))
    assert after.values == before.values
    check_registered(before.registered, after.registered, devices)


def check_tools_afterwards(
    library: Path, pruned: Path, devices: list[int], loader: Loader, prefix: str = ""
) -> None:
    """What people run on a library afterwards leaves a working one."""
    stripped = binutils.strip(pruned, pruned.with_suffix(".stripped"), prefix=prefix)
    check_library(library, stripped, devices, loader)
    assert stripped.stat().st_size <= pruned.stat().st_size + 4096
    patched = binutils.patchelf(pruned, pruned.with_suffix(".patched"))
    check_library(library, patched, devices, loader)
    both = binutils.strip(patched, pruned.with_suffix(".both"), prefix=prefix)
    check_library(library, both, devices, loader)


def numbers(words: str) -> list[int]:
    """``sm_80 sm_86`` → 80, 86."""
    return [int(word.removeprefix("sm_").rstrip("af")) for word in words.split()]


def same_file(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes."""
    return os.path.getsize(one) == os.path.getsize(other) and one.read_bytes() == other.read_bytes()  # noqa: PTH202
