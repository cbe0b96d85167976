"""Which containers go for their kernels, and which never do."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from builders import fatbin as make
from builders.cubin import cubin
from builders.sources import source_of
from wheelslim.errors import UsageError
from wheelslim.fatbin.reader import read_tiling
from wheelslim.kernels.filter import KernelVerdict, judge
from wheelslim.kernels.rules import KernelRules, compile_patterns, inference_groups
from wheelslim.kernels.survey import KernelSurvey, survey_containers
from wheelslim.kernels.used import UsedKernels
from wheelslim.plan import Planner, Request
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelslim.fatbin.model import Container
    from wheelslim.source import Source

FORWARD, BACKWARD, ADAM = "_Z7forwardPf", "_Z8backwardPf", "_Z4adamPf"


def kernels(*names: str, sm: int = 86, functions: Sequence[str] = ()) -> make.Entry:
    return make.compressed(make.Entry(cubin(names, functions=functions, sm=sm), sm=sm), "zstd")


def ptx(*names: str, sm: int = 80) -> make.Entry:
    text = "".join(f".visible .entry {name}()\n{{ ret; }}\n" for name in names)
    return make.Entry(text.encode(), sm=sm, kind=make.PTX)


@contextmanager
def judged(
    containers: Sequence[Sequence[make.Entry]],
    rules: KernelRules,
    *,
    targets: str = "sm_86",
    library: str = "lib.so",
    before: bytes = b"\xaa" * 40,
) -> Iterator[tuple[KernelVerdict, list[bool], KernelSurvey]]:
    """Survey built containers; gives the verdict and, for each container, whether it is vetoed."""
    data, _ = make.section([make.container(entries) for entries in containers])
    with source_of(data, before=before) as source:
        found = read_tiling(source, 0).containers
        survey = KernelSurvey(
            tuple(survey_containers(source, found, Planner(Request(parse_targets(targets)))))
        )
        verdict = judge(survey, library, rules)
        yield verdict, [verdict.veto(source, one) for one in found], survey


def drop(*words: str, keep: Sequence[str] = ()) -> KernelRules:
    return KernelRules(drop=compile_patterns(words), keep=compile_patterns(keep))


def test_only_containers_with_nothing_but_dropped_kernels_go() -> None:
    containers = [
        [kernels(FORWARD)],
        [kernels(BACKWARD, ADAM)],
        [kernels(FORWARD, BACKWARD)],
        [kernels(BACKWARD)],
    ]
    with judged(containers, drop("backward", "adam")) as (verdict, vetoed, _):
        assert vetoed == [False, True, False, True]
        account = verdict.account
        assert (account.containers, account.emptied, account.mixed, account.unlisted) == (4, 2, 1, 0)
        sizes = [sum(e.header_size + e.padded_size for e in one) for one in containers]
        assert (account.size, account.emptied_size, account.mixed_size) == (
            sum(sizes),
            sizes[1] + sizes[3],
            sizes[2],
        )


def test_a_kernel_in_two_containers_is_gone_only_with_both() -> None:
    """Each container is registered on its own, so a copy elsewhere does not make up for one."""
    twice = [[kernels(BACKWARD)], [kernels(BACKWARD, FORWARD)]]
    with judged(twice, drop("backward")) as (verdict, vetoed, _):
        assert vetoed == [True, False]
        assert (verdict.account.kernels_gone, verdict.account.operators) == (0, ())
    with judged([[kernels(BACKWARD)], [kernels(BACKWARD)]], drop("backward")) as (verdict, vetoed, _):
        assert vetoed == [True, True]
        assert (verdict.account.kernels_gone, verdict.account.operators) == (1, ("backward",))


def test_containers_without_kernels_stay() -> None:
    containers = [[kernels(functions=["_Z6helperf"])], [kernels()], []]
    with judged(containers, drop("")) as (verdict, vetoed, _):
        assert vetoed == [False, False, False]
        assert verdict.account.emptied == 0


def test_what_cannot_be_read_stays_and_is_counted() -> None:
    broken = make.Entry(b"\x7fELF broken".ljust(64, b"\0"), sm=86)
    stripped = make.Entry(cubin([BACKWARD], symbols=False, parameters=()), sm=86)
    with judged([[broken], [stripped], [kernels(BACKWARD)]], drop("")) as (verdict, vetoed, survey):
        assert vetoed == [False, False, True]
        assert verdict.account.unlisted == 2
        assert all(one.fault for one in survey.containers[:2])


def test_the_code_that_the_targets_load_decides() -> None:
    """sm_75 is no target: that its cubin holds a wanted kernel keeps nothing."""
    container = [kernels(FORWARD, sm=75), kernels(BACKWARD, sm=80), kernels(FORWARD, sm=90)]
    with judged([container], drop("backward")) as (_, vetoed, _survey):
        assert vetoed == [True]
    with judged([container], drop("backward"), targets="sm_86,sm_90") as (_, vetoed, _survey):
        assert vetoed == [False]


def test_ptx_that_a_target_would_compile_decides_too() -> None:
    with judged([[ptx(BACKWARD)], [ptx(FORWARD)]], drop("backward")) as (_, vetoed, _survey):
        assert vetoed == [True, False]


def test_a_container_that_no_target_runs_is_left_to_the_plan() -> None:
    with judged([[kernels(BACKWARD, sm=90)]], drop("backward")) as (verdict, vetoed, _):
        assert vetoed == [False]
        assert verdict.account.size == 0


def test_the_same_offset_in_another_section_is_another_container() -> None:
    data = make.container([kernels(BACKWARD)])
    planner = Planner(Request(parse_targets("sm_86")))
    with source_of(data + bytes(8) + data) as source:
        first, second = source.part(0, len(data)), source.part(len(data) + 8, len(data))

        def surveyed(part: Source) -> tuple[Container, KernelSurvey]:
            (found,) = read_tiling(part, 0).containers
            return found, KernelSurvey(tuple(survey_containers(part, [found], planner)))

        container, survey = surveyed(second)
        verdict = judge(survey, "lib.so", drop("backward"))
        assert verdict.veto(second, container)
        assert not verdict.veto(first, surveyed(first)[0])


def test_keep_wins_and_keep_alone_drops_the_rest() -> None:
    containers = [[kernels(FORWARD)], [kernels(BACKWARD)], [kernels(ADAM)]]
    with judged(containers, drop("backward|adam", keep=["^adam"])) as (_, vetoed, _survey):
        assert vetoed == [False, True, False]
    with judged(containers, KernelRules(keep=compile_patterns(["forward"]))) as (_, vetoed, _survey):
        assert vetoed == [False, True, True]


def test_names_are_matched_demangled() -> None:
    with judged(
        [[kernels("_ZN2at6native4adamILi4EEEvPf")]], drop(r"^void at::native::adam<4>\(float\*\)$")
    ) as (
        _,
        vetoed,
        _survey,
    ):
        assert vetoed == [True]


def test_a_pattern_that_does_not_compile_is_the_users_error() -> None:
    with pytest.raises(UsageError, match="no regular expression"):
        compile_patterns(["("])


def test_the_inference_list_speaks_of_torch_only() -> None:
    """Kernels of libcufft run backward transforms: the word means something else there."""
    rules = KernelRules(groups=inference_groups())
    containers = [[kernels(BACKWARD)], [kernels(FORWARD)]]
    with judged(containers, rules, library="torch/lib/libtorch_cuda.so") as (_, vetoed, _survey):
        assert vetoed == [True, False]
    with judged(containers, rules, library="nvidia/cufft/lib/libcufft.so.12") as (_, vetoed, _survey):
        assert vetoed == [False, False]


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        ("void pytorch_flash::flash_bwd_dot_do_o_kernel<true>(P)", True),
        ("fmha_cutlassB_f32_aligned_64x64_k32_sm80(P)", True),
        ("void at::native::softmax_warp_backward<float, 5>(float*)", True),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<M, "
            "at::native::FusedAdamMathFunctor<float> >()",
            True,
        ),
        ("_ZN2at6native60_GLOBAL__N__37cf237f_27_DistributionCauchyKernel_cu_d62eea8743distributionE", True),
        ("void pytorch_flash::flash_fwd_kernel<true>(P)", False),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(P)", False),
        ("_ZN2at6native54_GLOBAL__N__8e11a5fb_21_DistributionNormal_cu_0c5b6e8543distributionE", False),
        ("void at::native::templates::cuda::exponential_kernel<int>(P)", False),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::gelu_kernel(T)::"
            "{lambda()#1}>(int)",
            False,
        ),
    ],
)
def test_the_inference_list(name: str, goes: bool) -> None:
    found = KernelRules(groups=inference_groups()).unwanted("libtorch_cuda.so", {"_Zx": name})
    assert bool(found) is goes


def test_a_profile_keeps_what_it_lists() -> None:
    containers = [
        [kernels(FORWARD, ADAM)],
        [kernels(BACKWARD)],
        [kernels("_Z11fill_kernelPf")],
        [kernels("plain")],
    ]
    for used in ({"forward(float*)", "plain"}, {FORWARD, "plain"}, {"forward(float *)", "plain"}):
        with judged(containers, KernelRules(used=UsedKernels(frozenset(used)))) as (verdict, vetoed, _):
            assert vetoed == [False, True, False, False]
            assert verdict.account.kernels_gone == 1


def test_a_listed_kernel_in_two_containers_keeps_both() -> None:
    containers = [[kernels(FORWARD, BACKWARD)], [kernels(FORWARD)], [kernels(BACKWARD)]]
    with judged(containers, KernelRules(used=UsedKernels(frozenset({"forward(float*)"})))) as (
        _,
        vetoed,
        _survey,
    ):
        assert vetoed == [False, False, True]


def test_a_listed_kernel_that_is_not_found_exactly_keeps_its_namesakes() -> None:
    four, eight = "_Z1fILi4EEvPf", "_Z1fILi8EEvPf"
    rules = KernelRules(used=UsedKernels(frozenset({"void f<4, mystery>(float*)"})))
    with judged([[kernels(four)], [kernels(eight)], [kernels(BACKWARD)]], rules) as (_, vetoed, _survey):
        assert vetoed == [False, False, True]
    rules = KernelRules(used=UsedKernels(frozenset({"void f<(int)4>(float *)"})))
    with judged([[kernels(four)], [kernels(eight)], [kernels(BACKWARD)]], rules) as (_, vetoed, _survey):
        assert vetoed == [False, True, True]


def test_rules_are_falsy_only_when_nothing_was_asked_for() -> None:
    assert not KernelRules()
    assert KernelRules(drop=(re.compile("x"),))
    assert KernelRules(used=UsedKernels(frozenset()))
