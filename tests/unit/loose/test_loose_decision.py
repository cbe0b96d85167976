"""Which loose files stay: names, first bytes, and the rule."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.cubin import cubin
from wheelslim.architecture import Architecture
from wheelslim.loose.decision import decide
from wheelslim.loose.image import LooseImage, LooseKind, cubin_number, is_cubin, is_fatbin, ptx_target
from wheelslim.loose.naming import named_architecture, names_other_than, stem
from wheelslim.plan import PtxPolicy, Request
from wheelslim.targets import parse_targets


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("fmhaSm100fKernel_QkvE4m3OFp16H256.cubin", "sm_100f"),
        ("Bmm_Bfloat16_schedS_sm100f.cubin", "sm_100f"),
        ("libnvinfer_builder_resource_sm86.so.10.9.0", "sm_86"),
        ("kernel_sm_90a.cubin", "sm_90a"),
        ("gemm-SM90.cubin", "sm_90"),
        ("attention.compute_75.ptx", "sm_75"),
        ("sm_100a/attention.so", "sm_100a"),
        ("sm_100a/attention_sm_103.so", "sm_103"),
        ("kernels/sm80/x/gemm.cubin", "sm_80"),
        ("plain.cubin", None),
        ("two_sm80_sm90.cubin", None),
        ("osm80.cubin", None),
        ("kernel_sm80fp16.cubin", None),
        ("sm12.cubin", None),
        ("kernel_sm9.cubin", None),
        ("prism86.cubin", None),
        ("sm_8000.cubin", None),
    ],
)
def test_names(path: str, name: str | None) -> None:
    assert named_architecture(path) == (Architecture.parse(name) if name else None)


def test_a_known_number_finds_its_suffix_among_several_names() -> None:
    assert named_architecture("two_sm80_sm90a.cubin", 90) == Architecture.parse("sm_90a")
    assert named_architecture("two_sm90_sm90a.cubin", 90) is None
    assert named_architecture("one_sm80.cubin", 90) is None
    assert names_other_than("one_sm80.cubin", 90)
    assert not names_other_than("two_sm80_sm90a.cubin", 90)
    assert not names_other_than("sm80/one.cubin", 90)


def test_variants_share_a_stem() -> None:
    assert stem("fmhaSm100fKernel_X.cubin", 100) == stem("fmhaSm103aKernel_X.cubin", 103)
    assert stem("sm_80/k_sm80.cubin", 80) == stem("sm_90/k_sm90.cubin", 90)
    assert stem("k_sm80.cubin", 80) != stem("l_sm90.cubin", 90)
    assert stem("k_sm80.cubin", 80) != stem("k_sm80.cubin", 90)


@pytest.mark.parametrize("abi", [7, 8])
@pytest.mark.parametrize("number", [50, 75, 90, 103, 120])
def test_cubins_say_their_number(abi: int, number: int) -> None:
    head = cubin(["k"], sm=number, abi=abi)[:64]
    assert is_cubin(head)
    assert cubin_number(head) == number


@pytest.mark.parametrize(
    ("flags", "abi", "number"),
    [(0x6004B04, 8, 75), (0x6006402, 8, 100), (0xF00670C, 8, 103), (0x560556, 7, 86), (0x5A055A, 7, 90)],
)
def test_flags_of_real_cubins(flags: int, abi: int, number: int) -> None:
    """Read with readelf from cubins of nvcc 11 to 13 and of FlashInfer."""
    head = bytearray(cubin(["k"])[:64])
    head[8] = abi
    struct.pack_into("<I", head, 48, flags)
    assert cubin_number(bytes(head)) == number


@pytest.mark.parametrize("abi", [0, 6, 9, 255])
def test_a_cubin_of_unknown_abi_version_has_no_number(abi: int) -> None:
    head = bytearray(cubin(["k"])[:64])
    head[8] = abi
    assert cubin_number(bytes(head)) is None


def test_other_heads_are_no_cubins() -> None:
    assert not is_cubin(cubin(["k"], machine=62)[:64])
    assert not is_cubin(b"\x7fELF")
    assert not is_cubin(b"")
    assert is_fatbin(bytes.fromhex("50ed55ba"))
    assert not is_fatbin(b"\x7fELF")


@given(st.binary(min_size=64, max_size=64))
def test_any_head_gives_an_answer(head: bytes) -> None:
    assert is_cubin(head) in (True, False)
    assert cubin_number(head) is None or 30 <= cubin_number(head) <= 199  # type: ignore[operator]


def test_ptx_says_its_target() -> None:
    assert ptx_target(b"//\n.version 9.0\n.target sm_90a, debug\n.address_size 64\n") == "90a"
    assert ptx_target(b"// .target sm_80\n") is None
    assert ptx_target(b"") is None


def image(name: str, word: str | None = None, kind: LooseKind = LooseKind.CUBIN) -> LooseImage:
    return LooseImage(name, 100, kind, Architecture.parse(word) if word else None, "" if word else "unknown")


def stays(words: str, *images: LooseImage, ptx: str = "auto", exact: bool = False) -> set[str]:
    found = decide(images, Request(parse_targets(words), PtxPolicy(ptx), exact))
    assert not set(found.kept) & set(found.dropped)
    assert set(found.kept) | set(found.dropped) == {one.name for one in images}
    return set(found.kept)


K80, K86, K90 = image("k_sm80.cubin", "sm_80"), image("k_sm86.cubin", "sm_86"), image("k_sm90.cubin", "sm_90")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("sm_86", {"k_sm86.cubin"}),
        ("sm_80", {"k_sm80.cubin"}),
        ("sm_89", {"k_sm80.cubin", "k_sm86.cubin"}),
        ("sm_87", {"k_sm80.cubin", "k_sm86.cubin"}),
        ("sm_90", {"k_sm90.cubin"}),
        ("sm_75", set()),
        ("sm_86 sm_90", {"k_sm86.cubin", "k_sm90.cubin"}),
    ],
)
def test_variants_of_one_name(words: str, kept: set[str]) -> None:
    """Where none is the device's own, the application's choice is not known: all that run stay."""
    assert stays(words, K80, K86, K90) == kept


def test_other_names_are_other_groups() -> None:
    assert stays("sm_86", image("k_sm80.cubin", "sm_80"), image("l_sm86.cubin", "sm_86")) == {
        "k_sm80.cubin",
        "l_sm86.cubin",
    }


def test_suffixes() -> None:
    family, own, plain = (
        image("kSm100f.cubin", "100f"),
        image("kSm103a.cubin", "103a"),
        image("p.cubin", "100"),
    )
    assert stays("sm_100", family, own, plain) == {"kSm100f.cubin", "p.cubin"}
    # FlashInfer loads both on a device of capability 10.3; the plain one runs there too.
    assert stays("sm_103", family, own, plain) == {"kSm100f.cubin", "kSm103a.cubin", "p.cubin"}
    assert stays("sm_103", image("k_sm100a.cubin", "100a")) == set()
    assert stays("sm_90", image("k_sm90a.cubin", "90a"), image("k_sm90.cubin", "90")) == {
        "k_sm90a.cubin",
        "k_sm90.cubin",
    }


def test_tegra_keeps_the_lower_one_and_its_other_name() -> None:
    assert stays("sm_110", image("k_sm101.cubin", "101")) == {"k_sm101.cubin"}
    assert stays("sm_87", K86, image("k_sm87.cubin", "87")) == {"k_sm86.cubin", "k_sm87.cubin"}


def test_unknown_files_stay_and_leave_the_rest_uncertain() -> None:
    odd = image("odd.cubin")
    assert stays("sm_75", K80, odd) == {"odd.cubin"}
    found = decide([K80, odd], Request(parse_targets("sm_75 sm_86")))
    assert found.unknown == ("odd.cubin",)
    assert found.served == {"sm_86"}


def test_ptx() -> None:
    p70, p90 = image("k.compute_70.ptx", "70", LooseKind.PTX), image("k.compute_90.ptx", "90", LooseKind.PTX)
    assert stays("sm_86", p70, p90, K86) == {"k.compute_70.ptx", "k_sm86.cubin"}
    assert stays("sm_86", p70, p90, ptx="none") == set()
    assert stays("sm_86", p70, p90, ptx="all") == {"k.compute_70.ptx", "k.compute_90.ptx"}
    assert stays("sm_60 compute_90", p70, p90) == {"k.compute_90.ptx"}


def test_by_name() -> None:
    assert stays("sm_89", K80, K86, exact=True) == set()
    assert stays("sm_86", K80, K86, exact=True) == {"k_sm86.cubin"}
    assert stays("sm_90", image("k_sm90a.cubin", "90a"), exact=True) == set()
    assert stays("sm_90a", image("k_sm90a.cubin", "90a"), K90, exact=True) == {
        "k_sm90a.cubin",
        "k_sm90.cubin",
    }
