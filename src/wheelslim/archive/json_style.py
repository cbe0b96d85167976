"""JSON documents edited in place: what is not changed keeps its bytes where that can be had."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from wheelslim.errors import ArchiveError, Place

_INDENT = re.compile(r"\s*[\[{]\n([ \t]+)")
_ITEM_SEPARATOR = re.compile(r",( ?)[\n\"{\[0-9]")
_KEY_SEPARATOR = re.compile(r"\":( ?)")


@dataclass(frozen=True)
class JsonStyle:
    """How a document is written: what ``json.dumps`` takes, and what follows the last brace."""

    indent: str | None = "  "
    separators: tuple[str, str] = (",", ": ")
    ascii_only: bool = True
    tail: str = ""

    def write(self, value: Any) -> bytes:  # noqa: ANN401 - any JSON value
        """Return the document in this style."""
        text = json.dumps(value, indent=self.indent, separators=self.separators, ensure_ascii=self.ascii_only)
        return (text + self.tail).encode("utf-8")


def read_json(data: bytes, name: str) -> tuple[Any, JsonStyle]:
    """Parse a document and find the style that gives its bytes again, or one close to it.

    conda-build writes an indent of 2, rattler-build the same without escapes, others one line.

    Raises:
        ArchiveError: ``name`` does not parse.
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{name} does not parse", place=Place(member=name), found=str(error)) from error
    return value, _style(text)


def _style(text: str) -> JsonStyle:
    indent = _INDENT.match(text)
    item, key = _ITEM_SEPARATOR.search(text), _KEY_SEPARATOR.search(text)
    return JsonStyle(
        indent=indent[1] if indent else None,
        separators=("," + (item[1] if item else ""), ":" + (key[1] if key else " ")),
        ascii_only=text.isascii(),
        tail=text[len(text.rstrip()) :],
    )
