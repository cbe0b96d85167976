"""A check of coverage as JSON values (docs/schema/check-1.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wheelslim.report.json import coverage_counts

if TYPE_CHECKING:
    from wheelslim.coverage import Check, TargetCheck

CHECK_SCHEMA = "wheelslim/check/1"


def check_json(check: Check) -> dict[str, Any]:
    """Return the check as values that ``json.dumps`` takes; counts are of containers."""
    return {
        "schema": CHECK_SCHEMA,
        "artifact": check.artifact,
        "targets": list(check.targets),
        "strict": check.strict,
        "covered": check.covered,
        "libraries": [
            {
                "path": library.path,
                "ignored": library.ignored,
                "targets": {item.target: _target(item) for item in library.targets},
            }
            for library in check.libraries
        ],
        "notices": list(check.notices),
    }


def _target(item: TargetCheck) -> dict[str, Any]:
    return {
        "coverage": item.verdict.value.lower(),
        "covered": item.covered,
        "containers": coverage_counts(item.counts),
        "gaps": [
            {
                "section": gap.section,
                "architectures": list(gap.labels),
                "containers": [place.number for place in gap.places],
            }
            for gap in item.gaps
        ],
    }
