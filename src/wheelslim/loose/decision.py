"""Which loose files stay. Pure.

An application, not the driver, chooses among loose files, and by names of its own. So the driver's rule
is applied with a wider hand: among files whose names differ only in the architecture, those of the
device's own number stay, and family code beside them; where there is none of that number, all that
the device can run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.architecture import Suffix
from wheelslim.loose.image import LooseKind
from wheelslim.loose.naming import stem
from wheelslim.plan import PtxPolicy
from wheelslim.selection import RENAMED, TEGRA, runs_cubin, runs_ptx

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wheelslim.architecture import Architecture, ComputeCapability
    from wheelslim.loose.image import LooseImage
    from wheelslim.plan import Request


@dataclass(frozen=True)
class LooseDecision:
    """``dropped`` maps a name to the reason, ``kept`` to what it is kept for.

    ``served`` names the device targets that some file runs on. Files in ``unknown`` might run on any.
    """

    dropped: dict[str, str]
    kept: dict[str, str]
    served: frozenset[str]
    unknown: tuple[str, ...]


def decide(images: Iterable[LooseImage], request: Request) -> LooseDecision:
    """Apply the rule to files of one artifact."""
    groups: dict[tuple[LooseKind, str], list[LooseImage]] = defaultdict(list)
    dropped: dict[str, str] = {}
    kept: dict[str, str] = {}
    served: set[str] = set()
    unknown: list[str] = []
    for image in images:
        if image.architecture is None:
            kept[image.name] = image.why
            unknown.append(image.name)
        else:
            groups[image.kind, stem(image.name, image.architecture.number)].append(image)
    for (kind, _), variants in groups.items():
        wanted: dict[str, list[str]] = defaultdict(list)
        for target in request.targets:
            if target.capability is not None:
                able = [one for one in variants if _runs(one, target.capability)]
                served.update({target.name} if able else ())
                chosen = (
                    _named(variants, target.architecture)
                    if request.exact
                    else _chosen(able, target.capability)
                )
            else:
                chosen = _named(variants, target.architecture) if kind is LooseKind.PTX else []
            for one in chosen:
                wanted[one.name].append(target.name)
        for one in variants:
            if kind is LooseKind.PTX and request.ptx is not PtxPolicy.AUTO:
                stays = request.ptx is PtxPolicy.ALL
                (kept if stays else dropped)[one.name] = f"--ptx {request.ptx.value}"
            elif one.name in wanted:
                kept[one.name] = f"for {', '.join(wanted[one.name])}"
            else:
                dropped[one.name] = f"{_label(one)} is not needed"
    return LooseDecision(dropped, kept, frozenset(served), tuple(unknown))


def _runs(image: LooseImage, device: ComputeCapability) -> bool:
    if image.architecture is None:
        return True
    if image.kind is LooseKind.PTX:
        return runs_ptx(image.architecture, device)
    renamed = RENAMED.get(device.number) == image.architecture.number
    return renamed or runs_cubin(image.architecture, device)


def _chosen(able: Sequence[LooseImage], device: ComputeCapability) -> Sequence[LooseImage]:
    """Narrow the files that a device can run down to those that an application may choose for it."""
    exact = [one for one in able if one.architecture is not None and one.architecture.number == device.number]
    if not exact or device.number in TEGRA or exact[0].kind is LooseKind.PTX:
        return able
    family = [
        one for one in able if one.architecture is not None and one.architecture.suffix is Suffix.FAMILY
    ]
    return [one for one in able if one in exact or one in family]


def _named(variants: Iterable[LooseImage], architecture: Architecture) -> list[LooseImage]:
    """Filter by name. A cubin's suffix is known only where its name has it, else the number has to do."""
    return [
        one
        for one in variants
        if one.architecture is not None
        and one.architecture.number == architecture.number
        and one.architecture.suffix in (Suffix.NONE, architecture.suffix)
    ]


def _label(image: LooseImage) -> str:
    if image.architecture is None:
        return image.kind.value
    return image.architecture.ptx_name if image.kind is LooseKind.PTX else image.architecture.name
