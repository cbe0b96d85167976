"""Bytes as a Source, for code that reads files."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wheelslim.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def source_of(data: bytes, *, before: bytes = b"", after: bytes = b"") -> Iterator[Source]:
    """Put ``data`` into a temporary file, with other bytes around it that must not be read."""
    with tempfile.TemporaryFile() as file:
        file.write(before + data + after)
        file.flush()
        yield Source(file.fileno(), len(before), len(data))
