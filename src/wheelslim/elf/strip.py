"""Sections that the loader never sees, and which of them may go."""

from __future__ import annotations

from enum import Enum


class StripMode(Enum):
    """How much of what is not loaded goes (``--strip``)."""

    NONE = "none"
    DEBUG = "debug"
    """Debug information only: ``.symtab`` and ``.strtab`` stay."""
    ALL = "all"
