"""Cubins with kernels: small ELF files of machine 190 with sections, strings and symbols.

The layout is that of nvcc 13.0 as readelf shows it, reduced to what names kernels.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FUNC, OBJECT = 2, 1
ENTRY = 0x10
"""st_other of a kernel."""


@dataclass(frozen=True)
class Symbol:
    """One symbol of the table."""

    name: str
    kind: int = FUNC
    other: int = 0
    binding: int = 1


def cubin(
    kernels: Sequence[str] = (),
    *,
    functions: Sequence[str] = (),
    sm: int = 86,
    abi: int = 8,
    symbols: bool = True,
    machine: int = 190,
    parameters: Sequence[str] | None = None,
    repeat: int = 1,
) -> bytes:
    """Make a cubin with these kernels and device functions.

    ``parameters`` are the names of ``.nv.constant0`` sections, the kernels' unless given. ``repeat``
    lists the symbols so many times, all with the same strings.
    """
    table = [Symbol(name, other=ENTRY) for name in kernels] + [Symbol(name) for name in functions]
    strings, symtab = b"\0", b""
    for symbol in table:
        symtab += struct.pack(
            "<IBBHQQ", len(strings), symbol.binding << 4 | symbol.kind, symbol.other, 1, 0, 0
        )
        strings += symbol.name.encode() + b"\0"
    symtab = bytes(24) + symtab * repeat
    contents: list[tuple[str, int, bytes, int]] = [("", 0, b"", 0), (".strtab", 3, strings, 0)]
    if symbols:
        contents.append((".symtab", 2, symtab, 1))
    for name in (*kernels, *functions):
        contents.append((f".text.{name}", 1, b"\x90" * 16, 0))
    for name in kernels if parameters is None else parameters:
        contents.append((f".nv.constant0.{name}", 1, bytes(8), 0))
    return _elf(contents, sm, abi, machine)


def e_flags(sm: int, abi: int) -> int:
    """Put the SM number where the ABI version wants it: 7 real and virtual, 8 once."""
    return sm << 16 | 0x0500 | sm if abi == 7 else 0x6000002 | sm << 8


def _elf(contents: list[tuple[str, int, bytes, int]], sm: int, abi: int, machine: int) -> bytes:
    names = b""
    offsets = []
    for name, *_ in [*contents, (".shstrtab", 3, b"", 0)]:
        offsets.append(len(names))
        names += name.encode() + b"\0"
    body, headers = b"", b""
    for at, (_, kind, data, link) in zip(offsets, [*contents, (".shstrtab", 3, names, 0)], strict=True):
        headers += struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(body), len(data), link, 0, 8, 0)
        body += data.ljust(-(-len(data) // 8) * 8, b"\0")
    ident = b"\x7fELF\x02\x01\x01" + (b"\x41" if abi == 8 else b"\x33") + bytes([abi])
    count = len(contents) + 1
    return (
        struct.pack(
            "<16sHHIQQQIHHHHHH",
            ident,
            2,
            machine,
            1,
            0,
            0,
            64 + len(body),
            e_flags(sm, abi),
            64,
            56,
            0,
            64,
            count,
            count - 1,
        )
        + body
        + headers
    )
