"""The disk fails at one call of a whole run: nothing is lost, nothing is half written, the next run is right.

Every n-th call only; ``python -m reliability.run`` tries all of them.
"""

from __future__ import annotations

import pytest

from reliability.faults import FAULTS, fitting, run_sweep
from reliability.scenarios import SCENARIOS

CALLS = {"library": 2, "wheel": 5, "wheel-recompress-zstd": 9, "conda": 9, "tarbz2": 9, "env": 9}
"""How many calls to skip, so that each sweep stays within some seconds."""
READS = 9
"""There are about ten reads for each write."""


@pytest.mark.parametrize(
    ("scenario", "fault"),
    [(scenario.name, fault.name) for scenario in SCENARIOS.values() for fault in fitting(scenario)],
)
def test_a_fault_of_the_disk_hurts_nothing(scenario: str, fault: str) -> None:
    step = CALLS[scenario] * (READS if "read" in FAULTS[fault].calls.split() else 1)
    found = run_sweep(scenario, fault, step=step)
    assert found["wrong"] == []
    assert sum(found["codes"].values()) == -(-found["calls"] // step)
