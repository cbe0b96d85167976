"""Wheels of a requirements file, slimmed, beside a static index: the only part that reaches a network."""
