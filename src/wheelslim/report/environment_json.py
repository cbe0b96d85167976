"""The report of ``env`` as JSON values (docs/schema/env-1.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wheelslim.report.json import prune_json

if TYPE_CHECKING:
    from wheelslim.environment.outcome import EnvironmentReport

ENVIRONMENT_SCHEMA = "wheelslim/env/1"


def environment_json(report: EnvironmentReport) -> dict[str, Any]:
    """Return the report as values that ``json.dumps`` takes; ``tree`` is as the report of ``prune``."""
    return {
        "schema": ENVIRONMENT_SCHEMA,
        "tree": prune_json(report.prune),
        "changed": list(report.changed),
        "packages": list(report.packages),
        "finished": list(report.finished),
        "passed_over": [{"path": one.path, "reason": one.reason} for one in report.passed_over],
        "exit_code": int(report.exit_code),
    }
