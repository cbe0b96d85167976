"""One kernel, spelt by libstdc++, LLVM and NVIDIA."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.programs import program
from wheelslim.kernels.operators import operator_name, source_name
from wheelslim.kernels.spelling import base_name, demangle, leaf, signature

MANGLED = (
    "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_15neg_kernel_cudaERNS_18TensorIteratorBaseEENK"
    "UlvE_clEvENKUlvE4_clEvEUlfE_St5arrayIPcLm2EEEEviT0_T1_"
)
GNU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::TensorIteratorBase&)"
    "::{lambda()#1}::operator()() const::{lambda()#6}::operator()() const::{lambda(float)#1}, "
    "std::array<char*, 2ul> >(int, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::"
    "operator()() const::{lambda()#6}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>)"
)
LLVM = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::TensorIteratorBase&)"
    "::'lambda'()::operator()() const::'lambda4'()::operator()() const::'lambda'(float), "
    "std::array<char*, 2ul>>(int, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::'lambda'(), "
    "std::array<char*, 2ul>)"
)
NVIDIA = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::neg_kernel_cuda(at::"
    "TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() const::[lambda() (instance 6)]::"
    "operator ()() const::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)"
)

# Pairs as profilers print them: the PyTorch profiler, Nsight Systems.
SAME = [
    (
        "void at::native::(anonymous namespace)::softmax<float, true>(float*, float const*)",
        "void at::native::<unnamed>::softmax<float, (bool)1>(T1 *, const T1 *)",
    ),
    (
        "void foo::gemm<128, -1, float const*, 3ul>(foo::Params<float const*>)",
        "void foo::gemm<(int)128, (int)-1, const float *, (unsigned long)3>(foo::Params<T3>)",
    ),
    (
        "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::"
        "(anonymous namespace)::where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() const::"
        "{lambda(bool, float, float)#1}>(at::TensorIteratorBase&, at::native::(anonymous namespace)::"
        "where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() const::{lambda(bool, float, "
        "float)#1} const&)::{lambda(int)#1}>(int, float)",
        "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::"
        "native::<unnamed>::where_kernel_impl(at::TensorIterator &)::[lambda() (instance 1)]::operator ()() "
        "const::[lambda(bool, float, float) (instance 1)]>(at::TensorIteratorBase &, const T1 &)::[lambda("
        "int) (instance 1)]>(int, T3)",
    ),
    (
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    ),
    (
        "void k<std::tuple<int, long> ns::local<int>(int)::{lambda()#1}, unsigned long>(T)",
        "void k<ns::local<int>(int)::{lambda()#1}, unsigned long>(T)",
    ),
]


def test_demangling_gives_what_cxxfilt_gives() -> None:
    names = ["_Z10add_kernelPKfS0_Pfi", "_Z4kernILi100EEvPfPKfi", "sm90_gemm", "_Znonsense", MANGLED]
    judge = subprocess.run([program("c++filt"), *names], capture_output=True, text=True, check=True)
    expected = judge.stdout.splitlines()
    found = demangle(names)
    assert found[:-1] == expected[:-1]
    assert signature(found[-1]) == signature(expected[-1])


def test_all_spellings_of_a_kernel_have_one_signature() -> None:
    assert len({signature(name) for name in (GNU, LLVM, NVIDIA, *demangle([MANGLED]))}) == 1
    assert len({base_name(name) for name in (MANGLED, GNU, LLVM, NVIDIA)}) == 1
    assert len({leaf(name) for name in (MANGLED, GNU, LLVM, NVIDIA)}) == 1


@pytest.mark.parametrize(("one", "other"), SAME)
def test_pairs_of_spellings_agree(one: str, other: str) -> None:
    assert signature(one) == signature(other)
    assert base_name(one) == base_name(other)
    assert leaf(one) == leaf(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void f<float>(int)", "void f<double>(int)"),
        ("void f<4>(int)", "void f<8>(int)"),
        ("void f<unsigned int>(int)", "void f<int>(int)"),
        ("void a::f<int>(int)", "void b::f<int>(int)"),
        ("void f<a::x(int)::{lambda()#1}>(int)", "void f<a::y(int)::{lambda()#1}>(int)"),
        ("void f<int*>(int)", "void f<int>(int)"),
    ],
)
def test_different_kernels_have_different_signatures(one: str, other: str) -> None:
    assert signature(one) != signature(other)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (GNU, "at::native::vectorized_elementwise_kernel"),
        (MANGLED, "at::native::vectorized_elementwise_kernel"),
        ("_ZN7cutlass13device_kernelIN2at4cudaEEEvv", "cutlass::device_kernel"),
        ("_ZN41_INTERNAL_c5333101_10_SoftMax_cu_75209b9c2at3fooEv", "at::foo"),
        ("sm90_xmma_gemm_f16", "sm90_xmma_gemm_f16"),
        ("add_kernel(float const*, float const*, float*, int)", "add_kernel"),
        ("std::tuple<int, int> ns::f<int>(int)", "ns::f"),
        ("unsigned long ns::f<int>(int)", "ns::f"),
    ],
)
def test_base_names(name: str, base: str) -> None:
    assert base_name(name) == base


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        (GNU, "at::native::neg_kernel_cuda"),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<"
            "float, at::native::sum_functor<float, float, float> >, unsigned int, float, 4, 4> >(T)",
            "at::native::sum_functor",
        ),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
            "namespace)::TensorListMetadata<2>, "
            "at::native::(anonymous namespace)::ZeroFunctor<float, 1, 1, 0> >(T)",
            "at::native::ZeroFunctor",
        ),
        (
            "void at::native::softmax_warp_backward<float, 5, false>(float*)",
            "at::native::softmax_warp_backward",
        ),
        ("sm90_xmma_gemm_f16", "sm90_xmma_gemm_f16"),
        ("_ZN7cutlass13device_kernelIN2at4cudaEEEvv", "cutlass::device_kernel"),
    ],
)
def test_operators(name: str, operator: str) -> None:
    assert operator_name(name) == operator


def test_sources() -> None:
    assert source_name("_ZN2at6native43_GLOBAL__N__c5333101_10_SoftMax_cu_75209b9c7softmaxEv") == "SoftMax.cu"
    assert source_name("_ZN41_INTERNAL_c5333101_10_SoftMax_cu_75209b9c2at3fooEv") == "SoftMax.cu"
    assert source_name(MANGLED) is None


@given(st.text(alphabet="<>(){}[]:,& 'abT_Z019#lambda\x01\x02", max_size=60))
def test_any_text_gives_some_answer(text: str) -> None:
    for function in (signature, base_name, leaf, operator_name):
        assert isinstance(function(text), str)
    assert signature(signature(text)) is not None
