// Element-wise functions of neural networks.
#include <math.h>

struct Relu { template <typename T> __device__ T operator()(T x) const { return x > T(0) ? x : T(0); } };
struct Gelu { template <typename T> __device__ T operator()(T x) const { return x * T(0.5) * (T(1) + erf(x * T(0.70710678118654752))); } };
struct Silu { template <typename T> __device__ T operator()(T x) const { return x / (T(1) + exp(-x)); } };
struct Tanh { template <typename T> __device__ T operator()(T x) const { return tanh(x); } };
struct Softplus { template <typename T> __device__ T operator()(T x) const { return log1p(exp(x)); } };

template <typename T, typename Function>
__global__ void map_kernel(T *x, int n, Function function) {
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
#pragma unroll
    for (int i = start; i < start + 4; i++)
        if (i < n) x[i] = function(x[i]);
}

template <typename T>
static int activate(int which, T *x, int n) {
    int blocks = (n + 1023) / 1024;
    switch (which) {
    case 0: map_kernel<<<blocks, 256>>>(x, n, Relu()); break;
    case 1: map_kernel<<<blocks, 256>>>(x, n, Gelu()); break;
    case 2: map_kernel<<<blocks, 256>>>(x, n, Silu()); break;
    case 3: map_kernel<<<blocks, 256>>>(x, n, Tanh()); break;
    default: map_kernel<<<blocks, 256>>>(x, n, Softplus()); break;
    }
    return (int)cudaGetLastError();
}

extern "C" int demo_activate_f32(int which, float *x, int n) { return activate(which, x, n); }
extern "C" int demo_activate_f64(int which, double *x, int n) { return activate(which, x, n); }
