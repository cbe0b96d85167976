"""An explanation as JSON values (docs/schema/explain-1.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wheelslim.explanation import ExplainedGroup, ExplainedPlace, Explanation
    from wheelslim.selection import Choice

EXPLAIN_SCHEMA = "wheelslim/explain/1"


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as values that ``json.dumps`` takes; sizes in bytes, addresses virtual."""
    return {
        "schema": EXPLAIN_SCHEMA,
        "artifact": explanation.artifact,
        "library": explanation.library,
        "targets": list(explanation.targets),
        "groups": [_group(explanation, group) for group in explanation.groups],
        "notices": list(explanation.notices),
    }


def _group(explanation: Explanation, group: ExplainedGroup) -> dict[str, Any]:
    return {
        "section": group.section,
        "containers": [_place(place) for place in group.places],
        "entries": [
            {
                "architecture": entry.label,
                "size": entry.size,
                "kept": entry.verdict.reason.keeps,
                "verdict": entry.verdict.text,
                "targets": {
                    device: {"runs": one.runs, "taken": one.taken, "why": one.why}
                    for device, one in zip(explanation.devices, entry.standings, strict=True)
                },
            }
            for entry in group.entries
        ],
        "targets": {
            device: {"before": _choice(before), "after": _choice(after), "changed": before != after}
            for device, before, after in zip(explanation.devices, group.before, group.after, strict=True)
        },
    }


def _place(place: ExplainedPlace) -> dict[str, Any]:
    return {
        "number": place.number,
        "address": place.address,
        "wrappers": list(place.wrappers),
        "size": place.size,
        "kernels": None if place.kernels is None else list(place.kernels),
        "fault": place.fault or None,
    }


def _choice(choice: Choice) -> dict[str, Any]:
    return {"coverage": choice.coverage.value.lower(), "entries": list(choice.entries)}
