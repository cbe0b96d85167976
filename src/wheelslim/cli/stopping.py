"""Ctrl-C, and the request to end that container runtimes and CI send: both end in order."""

from __future__ import annotations

import signal

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


def _stop(number: int, _frame: object) -> None:
    raise StoppedError(number)
