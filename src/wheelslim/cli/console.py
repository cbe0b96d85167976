"""What standard output is: a terminal of some width, or a pipe that wants whole lines."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import typer

from wheelslim.errors import WheelslimError
from wheelslim.units import printable

_SENTENCES = ("note: ", "warning: ", "proved: ", "not covered: ", "books of ")
_ADVICE = "  "
"""What stands before a line that says what to do."""


def open_closed_streams() -> None:
    """Write to nowhere where standard output or standard error is closed (``>&-``)."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def console_width() -> int | None:
    """Return the terminal's columns, or None where no terminal is there."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def console_color() -> bool:
    """Whether to write colors: on a terminal, unless NO_COLOR (no-color.org) or TERM=dumb says otherwise."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def echo_text(text: str) -> None:
    """Print a report; what the output's encoding lacks is escaped, never a traceback.

    On a terminal its sentences are broken between words, and continued behind two spaces.
    """
    width = console_width()
    if width is not None:
        lines = [
            part
            for line in text.splitlines()
            for part in (_wrapped(line, width) if line.startswith(_SENTENCES) else [line])
        ]
        text = "\n".join(lines)
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=not text.endswith("\n"))


def echo_json(values: list[dict[str, Any]], *, several: bool) -> None:
    """Print the report of one artifact as an object, those of several under ``artifacts`` (docs/json.md)."""
    if several:
        typer.echo(json.dumps({"artifacts": values}, indent=2))
    elif values:
        typer.echo(json.dumps(values[0], indent=2))


def echo_error(message: object) -> None:
    """Print one message to standard error: what is wrong, and what to do on lines of its own.

    Names in it come from artifacts and may not steer the terminal.
    """
    lines = [f"wheelslim: {message}"]
    if isinstance(message, WheelslimError):
        lines = [f"wheelslim: {message.message}", *(_ADVICE + line for line in message.advice)]
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = [part for line in lines for part in _wrapped(line, width)]
    encoding = sys.stderr.encoding or "utf-8"
    text = printable("\n".join(lines)).encode(encoding, "backslashreplace").decode(encoding)
    typer.echo(text, err=True)


def _wrapped(line: str, width: int) -> list[str]:
    from textwrap import wrap

    return wrap(line, width, subsequent_indent=_ADVICE, break_long_words=False, break_on_hyphens=False)
