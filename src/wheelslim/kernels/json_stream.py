"""JSON objects out of a file that is too large to hold: one at a time."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 1 << 18
_LARGEST = 1 << 25
"""Characters of one value; the largest measured are the strings of an Nsight Systems export."""

_SPACE = re.compile(r"[\s,]*")


class Readable(Protocol):
    """A binary file, plain or decompressed on the way."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end."""
        ...


class JsonStreamError(ValueError):
    """The text is no JSON, or a value in it is too large."""


def objects(file: Readable, array_key: str) -> Iterator[dict[str, Any]]:
    """Yield JSON objects from ``file``, each parsed on its own.

    These are the elements of the array under ``array_key`` of an object, the elements of an array,
    or a whole object after the other (JSON lines). Bytes that are no UTF-8 become U+FFFD, and NaN
    is taken, since profilers write both.

    Raises:
        JsonStreamError: no JSON, cut off, or a value of more than 32 million characters.
    """
    text = _Text(file)
    while (first := text.peek()) is not None:
        if first == "[":
            text.skip("[")
            yield from _elements(text)
        elif first == "{":
            text.skip("{")
            yield from _members(text, array_key)
        else:
            raise JsonStreamError(f"no JSON object at character {text.position}")


def _elements(text: _Text) -> Iterator[dict[str, Any]]:
    while text.need() != "]":
        value = text.value()
        if isinstance(value, dict):
            yield value
    text.skip("]")


def _members(text: _Text, array_key: str) -> Iterator[dict[str, Any]]:
    """Read an object member by member, so that the long array in it need not be held."""
    members: dict[str, Any] = {}
    long = False
    while text.need() != "}":
        key = text.value()
        if text.need() != ":":
            raise JsonStreamError(f"a colon is missing at character {text.position}")
        text.skip(":")
        if key == array_key and text.need() == "[":
            text.skip("[")
            long = True
            yield from _elements(text)
        elif isinstance(key, str):
            members[key] = text.value()
        else:
            raise JsonStreamError(f"a key that is no string at character {text.position}")
    text.skip("}")
    if not long:
        yield members


class _Text:
    """The characters of a file around a moving place."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._parse = json.JSONDecoder(strict=False).raw_decode
        self._buffer = ""
        self._at = 0
        self._dropped = 0
        self._ended = False

    @property
    def position(self) -> int:
        """Characters before the current place."""
        return self._dropped + self._at

    def peek(self) -> str | None:
        """Return the next character that is no space or comma, None at the end."""
        while True:
            found = _SPACE.match(self._buffer, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more(_BLOCK):
                return None

    def need(self) -> str:
        """Return the next character; there has to be one."""
        found = self.peek()
        if found is None:
            raise JsonStreamError(f"cut off at character {self.position}")
        return found

    def skip(self, character: str) -> None:
        """Step over ``character``, which ``peek`` has seen."""
        self._at += len(character)

    def value(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Read one value."""
        self.need()
        block = _BLOCK
        while True:
            try:
                value, end = self._parse(self._buffer, self._at)
            except (ValueError, RecursionError) as error:
                # A value that goes on behind the buffer looks broken: read more, in growing steps.
                if len(self._buffer) - self._at > _LARGEST or not self._more(block):
                    raise JsonStreamError(f"no JSON value at character {self.position}: {error}") from error
                block *= 2
                continue
            if end == len(self._buffer) and self._more(block):
                continue  # A number may go on.
            self._at = end
            return value

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        data = self._file.read(size)
        self._ended = not data
        self._dropped += self._at
        self._buffer = self._buffer[self._at :] + self._decode.decode(data, final=self._ended)
        self._at = 0
        return True
