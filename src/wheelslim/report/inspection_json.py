"""An inspection as JSON values (docs/schema/inspect-1.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wheelslim.device_code import compression_shares
from wheelslim.inspection import group_shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wheelslim.device_code import CodeSection
    from wheelslim.estimate import Estimate
    from wheelslim.inspection import InspectedLibrary, Inspection
    from wheelslim.slim import Share

INSPECT_SCHEMA = "wheelslim/inspect/1"


def inspection_json(inspection: Inspection, estimates: Iterable[Estimate] = ()) -> dict[str, Any]:
    """Return the inspection as values that ``json.dumps`` takes; sizes in bytes."""
    return {
        "schema": INSPECT_SCHEMA,
        "artifact": inspection.artifact,
        "kind": inspection.kind.value,
        "size": inspection.size,
        "installed_size": inspection.installed_size,
        "libraries": [_library(library) for library in inspection.libraries],
        "loose": shares_json(inspection.loose),
        "other": {
            kind.name.lower(): {"files": item.files, "bytes": item.size}
            for kind, item in inspection.other.items()
        },
        "estimates": [estimate_json(item) for item in estimates],
        "notices": list(inspection.notices),
    }


def _library(library: InspectedLibrary) -> dict[str, Any]:
    return {
        "path": library.path,
        "size": library.size,
        "stored": library.stored,
        "sections": [_section(section) for section in library.code.sections],
        "symbols": library.code.symbols,
        "debug": library.code.debug,
        "host": library.host,
        "notes": list(library.code.notes),
    }


def _section(section: CodeSection) -> dict[str, Any]:
    return {
        "name": section.name,
        "size": section.size,
        "embedded": section.embedded,
        "containers": section.containers,
        "architectures": shares_json(group_shares(section.groups)),
        "compression": {how.value: size for how, size in compression_shares(section).items()},
        "sets": [
            {"architectures": list(group.labels), "containers": len(group.places)} for group in section.groups
        ],
    }


def shares_json(shares: Mapping[str, Share]) -> dict[str, dict[str, int]]:
    """Return entries and bytes by label."""
    return {label: {"entries": share.entries, "bytes": share.size} for label, share in shares.items()}


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """Return one estimate."""
    return {
        "targets": list(estimate.targets),
        "covered": estimate.covered,
        "size": {"before": estimate.size_before, "after": estimate.size_after},
        "installed_size": {"before": estimate.installed_before, "after": estimate.installed_after},
        "embedded": estimate.embedded,
    }
