"""Mutations that know where formats keep their sizes, offsets and counts: in aligned little-endian words."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

EDGES = (
    0, 1, 2, 3, 4, 7, 8, 15, 16, 24, 55, 56, 63, 64, 65, 255, 256, 4095, 4096, 0xFFFE, 0xFFFF, 0x10000,
    0x1FFFFF, 0x200000, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 8, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1,
)  # fmt: skip
WORDS = ("<H", "<I", "<Q")


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return ``data`` with one to five random changes."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        rng.choice(MUTATIONS)(result, rng)
    return bytes(result)


def _place(size: int, step: int, rng: random.Random) -> int:
    """Choose an offset; headers come first and tables last in most formats, so those are likelier."""
    span = max(1, size)
    kind = rng.randrange(4)
    if kind == 0:
        offset = rng.randrange(min(span, 256))
    elif kind == 1:
        offset = max(0, span - 1 - rng.randrange(min(span, 4096)))
    else:
        offset = rng.randrange(span)
    return offset - offset % step


def _set_word(data: bytearray, rng: random.Random) -> None:
    word = struct.Struct(rng.choice(WORDS))
    offset = _place(len(data), rng.choice((1, 2, 4, 8, 8)), rng)
    if offset + word.size > len(data):
        return
    top = (1 << 8 * word.size) - 1
    (old,) = word.unpack_from(data, offset)
    value = rng.choice(
        (
            rng.choice(EDGES),
            old + rng.choice((-8, -1, 1, 8, 64)),
            old * 2,
            len(data),
            rng.randrange(top),
            ~old,
        )
    )
    word.pack_into(data, offset, value & top)


def _flip_bit(data: bytearray, rng: random.Random) -> None:
    if data:
        data[_place(len(data), 1, rng)] ^= 1 << rng.randrange(8)


def _truncate(data: bytearray, rng: random.Random) -> None:
    del data[_place(len(data), 1, rng) :]


def _copy_over(data: bytearray, rng: random.Random) -> None:
    """Overwrite a stretch with another one: tables that overlap, containers that nest."""
    if len(data) < 16:
        return
    size = rng.choice((8, 16, 24, 56, 64, 128, 512))
    source, target = _place(len(data), 8, rng), _place(len(data), 8, rng)
    chunk = bytes(data[source : source + size])
    data[target : target + len(chunk)] = chunk


def _insert(data: bytearray, rng: random.Random) -> None:
    offset = _place(len(data), 1, rng)
    data[offset:offset] = rng.randbytes(rng.choice((1, 4, 8, 64)))


def _delete(data: bytearray, rng: random.Random) -> None:
    offset = _place(len(data), 1, rng)
    del data[offset : offset + rng.choice((1, 4, 8, 64))]


def _zero(data: bytearray, rng: random.Random) -> None:
    offset = _place(len(data), 8, rng)
    size = min(rng.choice((8, 64, 512)), len(data) - offset)
    data[offset : offset + size] = bytes(size)


MUTATIONS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _set_word, _set_word, _set_word, _set_word, _flip_bit, _truncate, _copy_over, _insert, _delete, _zero,
)  # fmt: skip
