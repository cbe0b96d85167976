"""Containers whose entries are stored anew: what the proof takes, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from builders import fatbin as make
from builders.sources import source_of
from wheelslim.architecture import ComputeCapability
from wheelslim.errors import Place, VerifyError
from wheelslim.fatbin.reader import read_container
from wheelslim.proof.anew import prove_stored_anew, units

if TYPE_CHECKING:
    from collections.abc import Sequence


def proved(before: Sequence[make.Entry | str], after: Sequence[make.Entry | str], *devices: int) -> int:
    with (
        source_of(make.container(before)) as old,
        source_of(b"\xaa" * 8 + make.container(after)) as new,
    ):
        return prove_stored_anew(
            list(units(old, read_container(old, 0))),
            list(units(new, read_container(new, 8))),
            [ComputeCapability.of_number(number) for number in devices],
            Place(section=".nv_fatbin"),
        )


def lz4(word: str, seed: int = 0) -> make.Entry:
    return make.entry(word, size=900, seed=seed, codec="lz4")


def zstd(word: str, seed: int = 0) -> make.Entry:
    return make.entry(word, size=900, seed=seed, codec="zstd")


def plain(word: str, seed: int = 0) -> make.Entry:
    return make.entry(word, size=900, seed=seed)


def test_other_compression_of_the_same_code_is_taken() -> None:
    before = [plain("sm_75"), lz4("sm_86"), plain("sm_90"), plain("compute_90")]
    assert proved(before, [zstd("sm_86"), zstd("sm_90"), plain("compute_90")], 86, 90) == 3
    assert proved(before, [zstd("sm_90"), zstd("compute_90")], 90, 120) == 2


def test_cubins_taken_out_of_a_concatenated_entry_are_taken() -> None:
    whole = make.concatenated(["sm_80", "sm_86", "sm_90a", "sm_120"], size=900)
    assert proved([whole, "sm_75"], [zstd("sm_86"), zstd("sm_90a"), "sm_75"], 86, 90, 75) == 3
    assert proved([whole], [whole], 80, 90) == 4


@pytest.mark.parametrize(
    "after",
    [
        [zstd("sm_86", seed=1), zstd("sm_90")],
        [zstd("sm_90"), zstd("sm_86")],
        [zstd("sm_86"), zstd("sm_90"), zstd("sm_90")],
        [replace(zstd("sm_86"), sm=80), zstd("sm_90")],
        [replace(zstd("sm_86"), version=(7, 1)), zstd("sm_90")],
        [replace(zstd("sm_86"), flags=zstd("sm_86").flags | make.SUFFIX_A), zstd("sm_90")],
        [replace(zstd("sm_86"), identifier=b"other.cu\0"), zstd("sm_90")],
        [replace(zstd("sm_86"), payload=zstd("sm_86").payload[:-4] + b"\0\0\0\0"), zstd("sm_90")],
    ],
    ids=["payload", "order", "twice", "number", "version", "suffix", "identifier", "broken"],
)
def test_other_code_is_refused(after: Sequence[make.Entry]) -> None:
    with pytest.raises(VerifyError):
        proved([lz4("sm_86"), lz4("sm_90")], after, 86, 90)


def test_missing_code_is_refused() -> None:
    with pytest.raises(VerifyError, match="sm_90 no longer runs"):
        proved([lz4("sm_86"), lz4("sm_90")], [zstd("sm_86")], 86, 90)
    whole = make.concatenated(["sm_80", "sm_86"], size=900)
    with pytest.raises(VerifyError, match="sm_86 no longer runs"):
        proved([whole], [zstd("sm_80")], 86)


def test_a_cubin_of_another_part_of_the_stream_is_refused() -> None:
    whole = make.concatenated(["sm_80", "sm_86"], size=900)
    swapped = make.compressed(replace(plain("sm_86"), payload=plain("sm_80").payload), "zstd")
    with pytest.raises(VerifyError):
        proved([whole], [swapped], 86)
