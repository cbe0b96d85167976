"""A verification as JSON values (docs/schema/verify-1.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wheelslim.errors import WheelslimError
    from wheelslim.verification import Verification

VERIFY_SCHEMA = "wheelslim/verify/1"


def verification_json(verification: Verification) -> dict[str, Any]:
    """Return the verification as values that ``json.dumps`` takes."""
    return {
        "schema": VERIFY_SCHEMA,
        "original": verification.original,
        "slimmed": verification.slimmed,
        "targets": list(verification.targets),
        "holds": verification.holds,
        "promises": [
            {
                "promise": finding.promise.name.lower(),
                "holds": finding.failure is None,
                "compared": finding.what,
                "failure": None if finding.failure is None else error_json(finding.failure),
            }
            for finding in verification.findings
        ],
        "notices": list(verification.notices),
    }


def error_json(error: WheelslimError) -> dict[str, Any]:
    """Return an error with its place; ``offset`` is bytes."""
    return {
        "what": error.what,
        "artifact": error.place.artifact,
        "member": error.place.member,
        "section": error.place.section,
        "offset": error.place.offset,
        "expected": error.expected,
        "found": error.found,
    }
