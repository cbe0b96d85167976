"""Fuzzing of everything that parses: ``python -m fuzz.run --help`` from tests/."""
