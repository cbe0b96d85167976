"""How much an archive may unpack to, so that no small file fills the disk."""

from __future__ import annotations

import os

from wheelslim.errors import ArchiveError, UsageError

DEFAULT_MAX_RATIO = 200
"""Bytes that an archive may unpack to per byte of its own, above which it is taken for a bomb."""

VARIABLE = "WHEELSLIM_MAX_RATIO"
"""The environment variable that gives another ratio: a positive number, or ``inf``."""

_FLOOR = 1 << 30
"""Bytes that any archive may unpack to, whatever its ratio."""


class Allowance:
    """Counts what an archive unpacks to against a limit."""

    def __init__(self, size: int, max_ratio: float | None = None) -> None:
        """Allow ``max_ratio`` times ``size``, the bytes of the archive; 1 GiB is always allowed.

        Raises:
            UsageError: there is no ``max_ratio``, and the variable holds no number.
        """
        self._size = size
        self._ratio = _ratio() if max_ratio is None else max_ratio
        self._taken = 0

    def take(self, size: int) -> None:
        """Count ``size`` bytes more.

        Raises:
            ArchiveError: it is more than the limit now.
        """
        self._taken += size
        if self._taken > max(_FLOOR, self._size * self._ratio):
            raise ArchiveError(
                "the archive would unpack to far more than its size, as a zip bomb does",
                expected=f"at most {self._ratio:g} times its {self._size} bytes",
                found=f"{self._taken} bytes",
                hint=f"If you trust it, raise the limit: {VARIABLE}={10 * self._ratio:g}",
            )


def _ratio() -> float:
    text = os.environ.get(VARIABLE, "")
    if not text:
        return DEFAULT_MAX_RATIO
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1
    if not ratio > 0:
        raise UsageError(f"{VARIABLE} is no positive number", found=repr(text))
    return ratio
