"""Hypothesis profile of ``make fuzz``: many examples, fresh ones in every run, two seconds for each."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "2000")),
    deadline=2000,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
