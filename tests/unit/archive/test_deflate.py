"""Parallel deflate; zlib is the judge of what comes out."""

from __future__ import annotations

import builtins
import hashlib
import random
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelslim.archive import deflate as deflate_module
from wheelslim.archive import inflate as inflate_module
from wheelslim.archive.deflate import BLOCK, Compression, Deflated, deflate, deflate_block, store
from wheelslim.archive.inflate import inflate
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

NOISE = random.Random(1).randbytes(BLOCK)
TEXT = b"".join(b"line %d of a text that shrinks\n" % number for number in range(60_000))
CASES = {
    "empty": b"",
    "one byte": b"x",
    "a block exactly": TEXT[:BLOCK],
    "a block and a byte": TEXT[: BLOCK + 1],
    "noise": NOISE + NOISE[:500],
    "zeros": bytes(3 * BLOCK + 5),
    "mixed": TEXT[: BLOCK // 2] + NOISE + TEXT + NOISE[:70_000] + bytes(BLOCK),
}


def blocks(data: bytes) -> list[bytes]:
    return [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]


def run(data: bytes, compression: Compression, jobs: int) -> tuple[Deflated, bytes]:
    out: list[bytes] = []
    with ThreadPoolExecutor(jobs) as pool:
        done = deflate(blocks(data), out.append, compression, pool, jobs + 1)
    return done, b"".join(out)


@pytest.fixture(params=["with the fast codecs", "with zlib alone"])
def codecs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cached = (
        deflate_module._isal,
        deflate_module._zlib_ng,
        inflate_module._inflater,
        inflate_module.crc32,
    )
    if request.param == "with zlib alone":
        real = builtins.__import__

        def without(name: str, *rest: Any) -> object:  # noqa: ANN401
            if name in ("isal", "zlib_ng"):
                raise ImportError(name)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        for function in cached:
            function.cache_clear()
    yield
    monkeypatch.undo()
    for function in cached:
        function.cache_clear()


@pytest.mark.usefixtures("codecs")
@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("case", CASES)
def test_zlib_inflates_it_to_the_same_bytes(case: str, compression: Compression) -> None:
    data = CASES[case]
    done, stream = run(data, compression, 2)
    judge = zlib.decompressobj(-15)
    assert judge.decompress(stream) + judge.flush() == data
    assert judge.eof
    assert judge.unused_data == b""
    assert done == Deflated(len(data), len(stream), zlib.crc32(data), hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("compression", Compression)
def test_the_number_of_jobs_does_not_show(compression: Compression) -> None:
    streams = {run(CASES["mixed"], compression, jobs)[1] for jobs in (1, 2, 7)}
    assert len(streams) == 1


def test_noise_is_stored_and_hardly_grows() -> None:
    for compression in Compression:
        done, _ = run(NOISE, compression, 1)
        assert done.compressed_size <= len(NOISE) + 5 * 17 + 2


def test_default_is_about_as_small_as_zlib_6() -> None:
    text = b"".join(b"%d: %x\n" % (number, number * 7919) for number in range(200_000))
    squeezer = zlib.compressobj(6, zlib.DEFLATED, -15)
    zlib_6 = len(squeezer.compress(text) + squeezer.flush())
    default, fast = run(text, Compression.DEFAULT, 2)[0], run(text, Compression.FAST, 2)[0]
    assert default.compressed_size <= zlib_6 * 1.05
    assert default.compressed_size <= fast.compressed_size * 1.02


def test_what_hardly_shrinks_is_stored_when_time_matters_and_squeezed_otherwise() -> None:
    # Seven bytes of eight bits each: 1.5 % could go.
    uneven = (
        random.Random(3).randbytes(BLOCK).translate(bytes(value if value > 9 else 0 for value in range(256)))
    )
    sizes = {compression: len(deflate_block(uneven, b"", compression)) for compression in Compression}
    assert sizes[Compression.FAST] == BLOCK + 5 * 17
    assert 0.97 * BLOCK < sizes[Compression.DEFAULT] < 0.99 * BLOCK
    assert sizes[Compression.MAX] < BLOCK


def test_noise_in_one_part_of_a_block_does_not_keep_the_rest_from_shrinking() -> None:
    half = NOISE[: BLOCK // 2] + TEXT[: BLOCK // 2]
    for compression in Compression:
        assert len(deflate_block(half, b"", compression)) < 0.75 * BLOCK


def test_a_block_uses_the_window_before_it() -> None:
    piece = random.Random(2).randbytes(32_000)
    for compression in Compression:
        assert len(deflate_block(piece, piece, compression)) < 3000


def test_work_in_progress_is_bounded() -> None:
    taken = 0
    seen: list[int] = []

    def source() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(40):
            taken += 1
            yield TEXT[:BLOCK]

    written = 0

    def write(_: bytes) -> None:
        nonlocal written
        written += 1
        seen.append(taken - written)

    with ThreadPoolExecutor(2) as pool:
        deflate(source(), write, Compression.FAST, pool, 3)
    assert max(seen) <= 3 + 1


def test_an_error_of_the_source_comes_through() -> None:
    def source() -> Iterator[bytes]:
        yield TEXT[:BLOCK]
        raise ValueError("boom")

    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match="boom"):
        deflate(source(), len, Compression.DEFAULT, pool, 3)


def test_storing_gives_the_same_account() -> None:
    out: list[bytes] = []
    done = store(blocks(TEXT), out.append)
    assert b"".join(out) == TEXT
    assert done == Deflated(len(TEXT), len(TEXT), zlib.crc32(TEXT), hashlib.sha256(TEXT).hexdigest())


def pieces_of(data: bytes) -> list[bytes]:
    return [data[at : at + 100_000] for at in range(0, len(data), 100_000)]


@pytest.mark.usefixtures("codecs")
def test_inflate_yields_bounded_steps() -> None:
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = bytes(9 << 20) + NOISE + bytes(9 << 20)
    stream = squeezer.compress(data) + squeezer.flush()
    steps = list(inflate(pieces_of(stream), len(data), Place()))
    assert b"".join(steps) == data
    assert max(len(step) for step in steps) <= 1 << 18


@pytest.mark.usefixtures("codecs")
@pytest.mark.parametrize("size", [1 << 18, (1 << 18) - 1, (1 << 18) + 1, 1 << 19, 0])
def test_inflate_ends_at_every_border(size: int) -> None:
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = NOISE[:size]
    stream = squeezer.compress(data) + squeezer.flush()
    assert b"".join(inflate(pieces_of(stream), size, Place())) == data
    for other in (size + 1, size - 1):
        if other >= 0:
            with pytest.raises(ArchiveError, match="another size"):
                list(inflate(pieces_of(stream), other, Place()))
    with pytest.raises(ArchiveError, match="follow the end"):
        list(inflate(pieces_of(stream + b"x"), size, Place()))
    with pytest.raises(ArchiveError, match=r"cut off|another size"):
        list(inflate(pieces_of(stream[:-1]), size, Place()))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.binary(min_size=1, max_size=50), st.integers(1, 40_000)), max_size=6))
def test_any_data_come_back(runs: list[tuple[bytes, int]]) -> None:
    data = b"".join(part * count for part, count in runs)
    for compression in (Compression.FAST, Compression.DEFAULT):
        _, stream = run(data, compression, 2)
        assert zlib.decompress(stream, -15) == data
