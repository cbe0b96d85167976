"""The report of ``prune`` as JSON values (docs/schema/prune-1.json)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from wheelslim.selection import Coverage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wheelslim.account import EmbeddedAccount, Share
    from wheelslim.kernels.filter import KernelAccount
    from wheelslim.report.model import LibraryReport, PruneReport

PRUNE_SCHEMA = "wheelslim/prune/1"


def prune_json(report: PruneReport) -> dict[str, Any]:
    """Return the report as values that ``json.dumps`` takes; sizes in bytes, counts of containers."""
    return {
        "schema": PRUNE_SCHEMA,
        "artifact": report.artifact,
        "output": report.output,
        "targets": list(report.targets),
        "ptx": report.ptx,
        "exact": report.exact,
        "size": {"before": report.size_before, "after": report.size_after},
        "installed_size": {"before": report.installed_before, "after": report.installed_after},
        "libraries": [_library(library) for library in report.libraries],
        "coverage": {item.target: _coverage(item.before, item.after, item.lost) for item in report.coverage},
        "proof": None if report.proof is None else dataclasses.asdict(report.proof),
        "dropped": list(report.dropped),
        "notices": list(report.notices),
    }


def _library(library: LibraryReport) -> dict[str, Any]:
    account = library.account
    return {
        "path": library.path,
        "size": {"before": account.size_before, "after": account.size_after},
        "method": account.method.value,
        "containers": account.containers,
        "stripped": account.stripped,
        "architectures": _architectures(account.before, account.after),
        "sections": [
            {"name": section.name, "architectures": _architectures(section.before, section.after)}
            for section in account.sections
        ],
        "embedded": _embedded(account.embedded),
        "coverage": {item.target: _coverage(item.before, item.after, item.lost) for item in account.coverage},
        "notes": list(account.notes),
        **({} if library.kernels is None else {"kernels": _kernels(library.kernels)}),
    }


def _kernels(account: KernelAccount) -> dict[str, Any]:
    return {
        "containers": {"emptied": account.emptied, "mixed": account.mixed, "unlisted": account.unlisted},
        "bytes": {"all": account.size, "emptied": account.emptied_size, "mixed": account.mixed_size},
        "kernels": {"before": account.kernels, "gone": account.kernels_gone},
        "operators_gone": list(account.operators),
        "sources_gone": list(account.sources),
    }


def _embedded(account: EmbeddedAccount | None) -> dict[str, Any] | None:
    if account is None:
        return None
    return {
        "containers": account.containers,
        "emptied": account.emptied,
        "architectures": _architectures(account.before, account.after),
    }


def _architectures(before: Mapping[str, Share], after: Mapping[str, Share]) -> dict[str, Any]:
    found = {}
    for label, share in before.items():
        kept = after.get(label)
        found[label] = {
            "entries": {"before": share.entries, "after": kept.entries if kept else 0},
            "bytes": {"before": share.size, "after": kept.size if kept else 0},
        }
    return found


def _coverage(before: Mapping[Coverage, int], after: Mapping[Coverage, int], lost: int) -> dict[str, Any]:
    return {"before": coverage_counts(before), "after": coverage_counts(after), "changed": lost}


def coverage_counts(counts: Mapping[Coverage, int]) -> dict[str, int]:
    """Return all four counts, by the lower-case name of the coverage."""
    return {coverage.value.lower(): counts.get(coverage, 0) for coverage in Coverage}
