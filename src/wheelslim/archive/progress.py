"""Progress over a package that is read twice."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Progress:
    """Turns the bytes of two passes over the package into steps that add up to its size.

    The survey is taken for a tenth of the work: compressing is the slow part.
    """

    def __init__(self, size: int, report: Callable[[int], None] | None) -> None:
        """Report on a package of ``size`` bytes."""
        self._size = size
        self._report = report
        self._seen = [0, 0]
        self._done = 0
        self._lock = threading.Lock()

    def survey_step(self, size: int) -> None:
        """``size`` bytes were surveyed."""
        self._step(0, size)

    def write_step(self, size: int) -> None:
        """``size`` bytes were read to be written."""
        self._step(1, size)

    def finish(self) -> None:
        """Report what is missing to the whole."""
        self._step(1, self._size)

    def _step(self, part: int, size: int) -> None:
        if self._report is None:
            return
        with self._lock:
            self._seen[part] += size
            due = min(self._size, (self._seen[0] + 9 * self._seen[1]) // 10)
            step, self._done = max(0, due - self._done), max(due, self._done)
            if step:
                self._report(step)
