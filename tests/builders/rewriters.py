"""A rewriter for tests of the archive layer alone: cuts the middle out of what starts with a mark."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.errors import VerifyError
from wheelslim.pieces import Copy, Data, Piece, Zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wheelslim.rewriter import RewriteResult
    from wheelslim.source import Source

MARK = b"\x7fELF"
NEW = b"new bytes"


@dataclass
class CuttingRewriter:
    """Replaces the middle half of every marked file; keeps a log of what it was asked.

    Files whose name holds ``keep`` stay as they are; names in ``dropping`` go. ``wrong`` makes ``confirm``
    fail for that name; ``before_plan`` is called first thing in ``plan``. What ends with ``last_words``,
    if there are any, stays as it is; ``glanced`` are the names of which only the end was shown.
    """

    dropping: frozenset[str] = frozenset()
    wrong: str = ""
    before_plan: Callable[[str, Source], None] = lambda name, source: None
    last_words: bytes = b""
    asked: list[str] = field(default_factory=list)
    glanced: list[str] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)
    results: list[RewriteResult] = field(default_factory=list)

    def drops(self, name: str) -> bool:
        """Drop what it was told to."""
        return name in self.dropping

    def wants(self, name: str, size: int, head: bytes) -> bool:
        """Want all that starts with the mark."""
        self.asked.append(name)
        assert len(head) == min(size, 64)
        return head.startswith(MARK)

    def telling_part(self, name: str, size: int, head: bytes) -> tuple[int, int] | None:
        """Ask for the end, if that can tell."""
        assert len(head) == min(size, 64)
        return (size - len(self.last_words), len(self.last_words)) if self.last_words else None

    def stays(self, name: str, size: int, head: bytes, part: bytes) -> bool:
        """Compare the end."""
        self.glanced.append(name)
        return part == self.last_words

    def plan(self, name: str, source: Source) -> Sequence[Piece] | None:
        """Cut the middle half out."""
        self.before_plan(name, source)
        self.planned.append(name)
        return None if "keep" in name else cut(source.size)

    def confirm(self, name: str, original: Source, written: Source) -> None:
        """Compare with the definition of the cut, not with the pieces."""
        self.confirmed.append(name)
        whole = original.read(0, original.size)
        if name == self.wrong or written.read(0, written.size) != expected(whole):
            raise VerifyError("it is not what was planned")

    def stamp(self, result: RewriteResult) -> bytes:
        """Tell what changed."""
        self.results.append(result)
        return json.dumps({"changed": [one.name for one in result.changed]}).encode() + b"\n"


def cut(size: int) -> list[Piece]:
    """The pieces of a file of ``size`` bytes."""
    quarter = size // 4
    return [Copy(0, quarter), Data(NEW), Zeros(3), Copy(size - quarter, quarter)]


def expected(data: bytes) -> bytes:
    """The new content of a file with ``data``."""
    quarter = len(data) // 4
    return data[:quarter] + NEW + bytes(3) + data[len(data) - quarter :]
