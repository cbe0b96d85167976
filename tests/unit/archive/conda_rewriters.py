"""Rewriters that know nothing of device code: they cut marked bytes out of files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.pieces import Copy, Data, Piece, Zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.rewriter import RewriteResult
    from wheelslim.source import Source

MAGIC = b"\x7fELF"
CUT = b"<cut>"
END = b"</cut>"


def library(*parts: bytes, cut: bytes = b"device code " * 100) -> bytes:
    """A file that ``Cutter`` wants, with something to cut out between each two parts."""
    return MAGIC + (CUT + cut + END).join(parts)


def cut_out(data: bytes) -> bytes:
    """What ``Cutter`` makes of a file, said in another way than it does it."""
    while (start := data.find(CUT)) >= 0:
        end = data.index(END, start)
        data = data[:start] + b"#" + data[end + len(END) :]
    return data


@dataclass
class Cutter:
    """Replaces each ``<cut>...</cut>`` of files that begin as ELF does by one ``#``."""

    unwanted: tuple[str, ...] = ()
    planned: list[str] = field(default_factory=list)
    confirmed: list[tuple[str, bytes, bytes]] = field(default_factory=list)
    heads: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def drops(self, name: str) -> bool:
        return name in self.unwanted

    def wants(self, name: str, size: int, head: bytes) -> bool:
        self.heads[name] = (size, head)
        return head.startswith(MAGIC)

    def telling_part(self, name: str, size: int, head: bytes) -> tuple[int, int] | None:
        return None

    def stays(self, name: str, size: int, head: bytes, part: bytes) -> bool:
        raise AssertionError(name)

    def plan(self, name: str, source: Source) -> Sequence[Piece] | None:
        self.planned.append(name)
        data = source.read(0, source.size)
        pieces: list[Piece] = []
        position = 0
        while (start := data.find(CUT, position)) >= 0:
            pieces += [Copy(position, start - position), Data(b"#"), Zeros(0)]
            position = data.index(END, start) + len(END)
        if not pieces:
            return None
        return [*pieces, Copy(position, len(data) - position)]

    def confirm(self, name: str, original: Source, written: Source) -> None:
        self.confirmed.append((name, original.read(0, original.size), written.read(0, written.size)))

    def stamp(self, result: RewriteResult) -> bytes:
        return json.dumps({"by": "test", "changed": [change.name for change in result.changed]}).encode()
