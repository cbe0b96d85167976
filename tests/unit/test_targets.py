"""The words of docs/cli.md, "Targets", and what they mean."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import parse_wheel_filename

from wheelslim.architecture import Architecture, ComputeCapability, Suffix
from wheelslim.errors import ExitCode, TargetError
from wheelslim.gpu_names import NAMES, SEVERAL
from wheelslim.native import from_nvidia_smi, from_nvml, native
from wheelslim.targets import KNOWN_NUMBERS, Target, build_tag, known_names, parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def names(words: str | Iterable[str], *native_gpus: tuple[int, int]) -> list[str]:
    found = parse_targets(words, detect=lambda: [ComputeCapability(*gpu) for gpu in native_gpus])
    return [target.name for target in found]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # one device in every spelling
        ("sm_86", "sm_86"),
        ("sm86", "sm_86"),
        ("SM_86", "sm_86"),
        ("sm-86", "sm_86"),
        ("86", "sm_86"),
        ("8.6", "sm_86"),
        ("sm_90a", "sm_90a"),
        ("90a", "sm_90a"),
        ("9.0a", "sm_90a"),
        ("9.0A", "sm_90a"),
        ("sm_100f", "sm_100f"),
        ("10.0f", "sm_100f"),
        ("103", "sm_103"),
        ("10.3", "sm_103"),
        ("12.1", "sm_121"),
        ("3.7", "sm_37"),
        # PTX
        ("8.6+PTX", "sm_86+ptx"),
        ("sm_86+ptx", "sm_86+ptx"),
        ("9.0a+PTX", "sm_90a+ptx"),
        ("compute_90", "compute_90"),
        ("compute90", "compute_90"),
        ("compute_90a", "compute_90a"),
        # lists: order and repetition do not matter
        ("sm_86,sm_80", "sm_80 sm_86"),
        ("86;80", "sm_80 sm_86"),
        ("86 80\t75\n", "sm_75 sm_80 sm_86"),
        ("86, 80; 75", "sm_75 sm_80 sm_86"),
        (" ,86,, ", "sm_86"),
        ("86,8.6,sm_86", "sm_86"),
        ("86,86+PTX,86", "sm_86+ptx"),
        ("90a,90,compute_90", "sm_90 compute_90 sm_90a"),
        ("120,75,103", "sm_75 sm_103 sm_120"),
        # TORCH_CUDA_ARCH_LIST
        ("7.5;8.0;8.6+PTX", "sm_75 sm_80 sm_86+ptx"),
        ("Ampere", "sm_80 sm_86+ptx"),
        ("Turing;Ampere;8.6", "sm_75+ptx sm_80 sm_86+ptx"),
        ("Ampere+Tegra", "sm_87"),
        ("Maxwell Maxwell+Tegra", "sm_50 sm_52+ptx sm_53"),
        ("Kepler Kepler+Tesla", "sm_35+ptx sm_37"),
        ("Pascal Volta+Tegra Hopper", "sm_60 sm_61+ptx sm_72 sm_90+ptx"),
        ("Blackwell", "sm_100 sm_103 sm_120 sm_121+ptx"),
        ("Ada+PTX", "sm_89+ptx"),
        # product names
        ("t4", "sm_75"),
        ("A100", "sm_80"),
        ("a10g", "sm_86"),
        ("a-10g", "sm_86"),
        ("l4,l40s", "sm_89"),
        ("h100 h200", "sm_90"),
        ("gh200", "sm_90"),
        ("b200 gb200", "sm_100"),
        ("b300 gb300", "sm_103"),
        ("rtx4090", "sm_89"),
        ("rtx-4090", "sm_89"),
        ("RTX_4090", "sm_89"),
        ("geforce-rtx-4090", "sm_89"),
        ("rtx 4090", "sm_89"),
        ("RTX 4090, RTX 3090", "sm_86 sm_89"),
        ("rtx 4090+PTX", "sm_89+ptx"),
        ("rtx5090+ptx", "sm_120+ptx"),
        ("gtx1080ti;GTX 1660 Super", "sm_61 sm_75"),
        ("tesla-v100", "sm_70"),
        ("thor", "sm_110"),
        ("orin", "sm_87"),
        ("Jetson AGX Orin", "sm_87"),
        ("orin nano", "sm_87"),
        ("Jetson Nano", "sm_53"),
        ("xavier tx2", "sm_62 sm_72"),
        ("gb10", "sm_121"),
        ("DGX Spark", "sm_121"),
        # the names that nvidia-smi prints
        ("Tesla T4", "sm_75"),
        ("NVIDIA A100-SXM4-80GB", "sm_80"),
        ("a100-80gb", "sm_80"),
        ("NVIDIA A10G", "sm_86"),
        ("NVIDIA H100 80GB HBM3", "sm_90"),
        ("NVIDIA GH200 144G HBM3e", "sm_90"),
        ("Tesla V100-SXM2-16GB", "sm_70"),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "sm_86"),
        ("NVIDIA RTX A6000", "sm_86"),
        ("Quadro RTX 6000", "sm_75"),
        ("NVIDIA RTX 6000 Ada Generation", "sm_89"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm_120"),
        ("NVIDIA TITAN X (Pascal)", "sm_61"),
        # where words are names by themselves they stay several targets
        ("b200 Blackwell", "sm_100 sm_103 sm_120 sm_121+ptx"),
    ],
)
def test_words(words: str, expected: str) -> None:
    assert names(words) == expected.split()


def test_several_strings_are_one_list() -> None:
    assert names(["86,80", "a100", "compute_90"]) == ["sm_80", "sm_86", "compute_90"]


def test_native_is_replaced_by_the_gpus_at_hand() -> None:
    assert names("native", (8, 6), (7, 5), (8, 6)) == ["sm_75", "sm_86"]
    assert names("native+PTX,80", (8, 6)) == ["sm_80", "sm_86+ptx"]


def test_native_takes_a_gpu_that_is_newer_than_the_table() -> None:
    assert 135 not in KNOWN_NUMBERS
    assert names("native", (13, 5)) == ["sm_135"]


@pytest.mark.parametrize(
    "word",
    ["sm_12", "sm_999", "85", "sm_102", "8.5", "0.0", "086", "sm_", "compute_", "compute_12", "8.66",
     "sm_8.6", "1234", "sm_90b", "sm_90aa", "rtx", "rtx4095", "gtx960m", "GTX 960 mobile",
     "a10080gb", "+PTX", "ptx", "Ampere+Volta", "8.6-PTX",
     "\uff18\uff16", "sm_8\u0666", "é", "86:80", "--arch"],
)  # fmt: skip
def test_unknown_words_list_what_is_known(word: str) -> None:
    with pytest.raises(TargetError) as error:
        parse_targets(word)
    message = str(error.value)
    assert error.value.exit_code is ExitCode.USAGE
    assert f"sm_{', '.join(map(str, KNOWN_NUMBERS))}" in message
    assert "native" in message
    assert "TORCH_CUDA_ARCH_LIST" in message


@pytest.mark.parametrize(
    ("word", "in_message"),
    [
        ("rtx6000", ["'rtx6000' is the name of several GPUs", "quadrortx6000 (7.5)", "rtxpro6000 (12.0)"]),
        ("NVIDIA RTX 6000", ["several GPUs", "quadrortx6000 (7.5), rtx6000ada (8.9) or rtxpro6000 (12.0)"]),
        ("sm_86 RTX 6000", ["'RTX 6000' is the name of several GPUs"]),
        ("TITAN X", ["several GPUs", "gtxtitanx (5.2) or titanxpascal (6.1)"]),
        ("sm_86 RTX 4090", ["'RTX 4090' is a name with spaces in a list", "a comma before"]),
        ("RTX 5090 Ti", ["unknown target 'RTX 5090 Ti'", "rtx5090 (12.0)"]),
        ("sm_85", ["Did you mean sm_80 or sm_86?"]),
        ("9.1", ["Did you mean sm_90 or sm_100?"]),
        ("nano", ["jetsonnano (5.3)", "orinnano (8.7)"]),
        ("rtx409", ["rtx4090 (8.9)"]),
        ("sm_86a", ["suffix a", "sm_90a"]),
        ("90f", ["suffix f", "sm_100f"]),
        ("compute_90+PTX", ["PTX twice"]),
        ("86," + "x" * 5000, ["'xxx", "…'"]),
    ],
)
def test_errors_say_what_to_write_instead(word: str, in_message: list[str]) -> None:
    with pytest.raises(TargetError) as error:
        parse_targets(word)
    message = str(error.value)
    assert [part for part in in_message if part not in message] == []
    assert len(error.value.message) < 100
    assert all(len(line) < 170 for line in error.value.advice)


def test_every_name_of_several_gpus_is_refused_with_all_of_them() -> None:
    for shared, full in SEVERAL.items():
        assert shared not in NAMES
        assert len({NAMES[name] for name in full}) == len(full)
        assert set(full) >= {f"{mark}{shared}" for mark in ("quadro", "gtx") if f"{mark}{shared}" in NAMES}
        assert set(full) >= {f"{shared}{mark}" for mark in ("ada", "pascal") if f"{shared}{mark}" in NAMES}


@pytest.mark.parametrize("words", ["", " ", ",;", [], ["", " "]])
def test_no_target_is_an_error(words: str | list[str]) -> None:
    with pytest.raises(TargetError, match="no target given"):
        parse_targets(words)


def test_a_suffix_names_the_same_device() -> None:
    plain, arch = parse_targets("sm_90,sm_90a")
    assert plain.capability == arch.capability == ComputeCapability(9, 0)
    assert (plain.suffix, arch.suffix) == (Suffix.NONE, Suffix.ARCH)
    assert arch.architecture == Architecture(90, Suffix.ARCH)


def test_ptx_is_no_device() -> None:
    (target,) = parse_targets("compute_100f")
    assert not target.is_device
    assert target.only_ptx == Architecture(100, Suffix.FAMILY)
    assert target.capability is None


@pytest.mark.parametrize(
    ("capability", "only_ptx"), [(None, None), (ComputeCapability(9, 0), Architecture(90))]
)
def test_a_target_is_one_of_two(capability: ComputeCapability | None, only_ptx: Architecture | None) -> None:
    with pytest.raises(ValueError, match="either"):
        Target(capability, only_ptx=only_ptx)


@pytest.mark.parametrize(
    ("words", "tag"),
    [
        ("sm_86,sm_80", "0_sm80_sm86"),
        ("sm_90a,100f", "0_sm90a_sm100f"),
        ("8.6+PTX", "0_sm86ptx"),
        ("9.0a+PTX,compute_90a", "0_sm90aptx_compute90a"),
    ],
)
def test_build_tag(words: str, tag: str) -> None:
    assert build_tag(parse_targets(words)) == tag


TARGETS = st.lists(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["sm_", "compute_"]),
        st.sampled_from([number for number in KNOWN_NUMBERS if number >= 100]),
        st.sampled_from(["", "a", "f"]),
    ).flatmap(lambda word: st.sampled_from([word] if word.startswith("c") else [word, word + "+PTX"])),
    min_size=1,
    max_size=6,
)


@given(TARGETS, TARGETS)
def test_build_tags_fit_into_a_wheel_name_and_tell_targets_apart(one: list[str], other: list[str]) -> None:
    tag = build_tag(parse_targets(one))
    *_, build, tags = parse_wheel_filename(f"torch-2.14.1-{tag}-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert build == (0, tag[1:])
    assert len(tags) == 1
    assert (build_tag(parse_targets(other)) == tag) == (parse_targets(other) == parse_targets(one))


@given(TARGETS)
def test_names_read_back_as_themselves(words: list[str]) -> None:
    targets = parse_targets(words)
    assert parse_targets(" ".join(target.name for target in targets)) == targets
    assert parse_targets(reversed(words)) == targets


WORD_PARTS = st.sampled_from(
    ["sm_", "compute_", "86", "9.0", "a", "f", "+PTX", "+", " ", ",", ";", "-", "_", "rtx", "4090", "ampere",
     "native", "gb", "80", "nvidia", "laptop", "(", "\0", "\n", "0"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(WORD_PARTS).map("".join)))
def test_any_text_gives_targets_or_a_target_error(text: str) -> None:
    try:
        targets = parse_targets(text, detect=lambda: [ComputeCapability(8, 6)])
    except TargetError as error:
        assert str(error)
    else:
        assert targets
        assert len(set(targets)) == len(targets)


@given(st.sampled_from(sorted(NAMES)), st.data())
def test_product_names_ignore_case_and_separators(name: str, data: st.DataObject) -> None:
    pieces = []
    for letter in name:
        pieces.append(data.draw(st.sampled_from([letter, letter.upper()])))
        pieces.append(data.draw(st.sampled_from(["", "", "-", "_"])))
    assert names("".join(pieces)) == [f"sm_{NAMES[name].number}"]


def test_product_names_name_known_devices_and_nothing_else() -> None:
    assert known_names() is NAMES
    assert {capability.number for capability in NAMES.values()} <= set(KNOWN_NUMBERS)
    for name in NAMES:
        assert not re.match(r"[0-9]", name), "would be read as a number"


def test_the_manual_lists_every_product_under_its_capability() -> None:
    listed = {}
    for row in re.finditer(
        r"^\| ([0-9]+)\.([0-9]) \| (.+) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE
    ):
        for name in re.findall(r"`([^`]+)`", row[3]):
            listed[name] = ComputeCapability(int(row[1]), int(row[2]))
    assert listed == dict(NAMES)


# --- native ---------------------------------------------------------------------------------------


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a program on an otherwise empty PATH that answers in the place of nvidia-smi."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def answer(output: str, status: int = 0) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(
            f"#!{sys.executable} -S\n"
            "import sys\n"
            "if sys.argv[1:] != ['--query-gpu=compute_cap', '--format=csv,noheader']: sys.exit(99)\n"
            f"sys.stdout.write({output!r})\n"
            f"sys.exit({status})\n"
        )
        program.chmod(0o755)

    return answer


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("8.6\n", [(8, 6)]),
        ("9.0\n9.0\n7.5\n", [(9, 0), (7, 5)]),
        ("12.0\r\n", [(12, 0)]),
        ("[N/A]\n8.9\n", [(8, 9)]),
        ("No devices were found\n", []),
        ("", []),
    ],
)
def test_nvidia_smi(nvidia_smi: Callable[..., None], output: str, expected: list[tuple[int, int]]) -> None:
    nvidia_smi(output)
    assert from_nvidia_smi() == {ComputeCapability(*gpu) for gpu in expected}


def test_nvidia_smi_that_fails_is_no_answer(nvidia_smi: Callable[..., None]) -> None:
    nvidia_smi("8.6\n", status=9)
    assert from_nvidia_smi() == frozenset()


def test_no_driver_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("wheelslim.native.from_nvml", lambda: from_nvml("libno-such-nvml.so.1"))
    with pytest.raises(TargetError, match="no NVIDIA GPU on this machine") as error:
        parse_targets("native")
    assert "sm_86" in str(error.value)


def test_native_falls_back_to_nvidia_smi(
    monkeypatch: pytest.MonkeyPatch, nvidia_smi: Callable[..., None]
) -> None:
    monkeypatch.setattr("wheelslim.native.from_nvml", lambda: from_nvml("libno-such-nvml.so.1"))
    nvidia_smi("9.0\n8.0\n")
    assert native() == (ComputeCapability(8, 0), ComputeCapability(9, 0))


NVML = """
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{ *device = (void *)(0x100000000ul + index); return index == 1 ? 15 : 0; }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{ *major = 8 + ((unsigned long)device & 3); *minor = 0; return 0; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize(("init", "expected"), [(0, [(8, 0), (10, 0)]), (9, [])])
def test_nvml(tmp_path: Path, init: int, expected: list[tuple[int, int]]) -> None:
    """A library with NVML's functions: three devices, of which the second is lost."""
    source, library = tmp_path / "nvml.c", tmp_path / "libnvml.so"
    source.write_text(NVML)
    subprocess.run(["gcc", "-shared", "-fPIC", f"-DINIT={init}", "-o", str(library), str(source)], check=True)
    assert from_nvml(str(library)) == {ComputeCapability(*gpu) for gpu in expected}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_library_that_is_no_nvml_is_no_answer(tmp_path: Path) -> None:
    source, library = tmp_path / "other.c", tmp_path / "libother.so"
    source.write_text("int nvmlInit_v2(void) { return 0; } int nvmlShutdown(void) { return 0; }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    assert from_nvml(str(library)) == frozenset()


@pytest.mark.gpu
def test_both_ways_agree_on_a_machine_with_a_gpu() -> None:
    assert from_nvml()
    assert from_nvml() == from_nvidia_smi()
