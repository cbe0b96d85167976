"""Ctrl-C, and the request to end that container runtimes and CI send: both end in order."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_SOON = 0.005
"""Seconds after which to look again."""

_STOPPED = 128
"""A shell's exit code for a signal is this and its number."""


class StoppedError(BaseException):
    """SIGINT or SIGTERM came; the command line ends with ``exit_code``: 130 or 143.

    Not a KeyboardInterrupt: typer ends the process at that without a word.
    """

    def __init__(self, number: int) -> None:
        """``number`` is that of the signal."""
        super().__init__(number)
        self.exit_code = _STOPPED + number


def catch_signals() -> None:
    """Let the signals raise StoppedError in the main thread from now on; one that is ignored stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _stop)


def behind(error: BaseException) -> StoppedError | None:
    """Return the StoppedError that ``error`` came of.

    One that is raised between two steps of a lock of ``threading`` ends as its RuntimeError.
    """
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, StoppedError):
        seen = seen.__context__
    return seen


def settle() -> None:
    """Get ready to end at once: nothing may disturb the message, and nothing is left behind.

    Further signals are ignored. Temporary files that nobody had taken care of yet are removed.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)

    from wheelslim.archive.scratch import remove_own

    remove_own()


def _stop(number: int, frame: FrameType | None) -> None:
    if _imports(frame):
        signal.signal(signal.SIGALRM, lambda _, later: _stop(number, later))
        signal.setitimer(signal.ITIMER_REAL, _SOON)
        return
    raise StoppedError(number)


def _imports(frame: FrameType | None) -> bool:
    """Tell whether the importer itself is at work.

    What is raised in there is swallowed where a weak reference is called back, and the lock of all
    imports stays taken: every thread that imports waits for ever (seen with CPython 3.11).
    """
    return (
        frame is not None
        and frame.f_code.co_filename.startswith("<frozen importlib")
        and hasattr(signal, "setitimer")
    )
