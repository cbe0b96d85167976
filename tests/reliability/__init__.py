"""Faults injected into whole runs; ``python -m reliability.faults --help`` from tests/."""
