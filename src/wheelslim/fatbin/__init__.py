"""Fatbin containers: the format, its reader, and the writing of a container with fewer entries.

Format facts and their evidence: docs/fatbin-format.md.
"""
