// Tiled matrix product, one kernel for each tile size.
#include <cuda_fp16.h>

template <typename T, int TILE>
__global__ void matmul_kernel(const T *a, const T *b, T *c, int n) {
    __shared__ T left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    T sum = T(0);
    for (int start = 0; start < n; start += TILE) {
        int i = start + threadIdx.x, j = start + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < n && i < n ? a[row * n + i] : T(0);
        right[threadIdx.y][threadIdx.x] = column < n && j < n ? b[j * n + column] : T(0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

template <typename T>
static int matmul(const T *a, const T *b, T *c, int n) {
    if (n <= 64) matmul_kernel<T, 8><<<dim3((n + 7) / 8, (n + 7) / 8), dim3(8, 8)>>>(a, b, c, n);
    else if (n <= 512) matmul_kernel<T, 16><<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(a, b, c, n);
    else matmul_kernel<T, 32><<<dim3((n + 31) / 32, (n + 31) / 32), dim3(32, 32)>>>(a, b, c, n);
    return (int)cudaGetLastError();
}

extern "C" int demo_matmul_f32(const float *a, const float *b, float *c, int n) { return matmul(a, b, c, n); }
extern "C" int demo_matmul_f64(const double *a, const double *b, double *c, int n) { return matmul(a, b, c, n); }
extern "C" int demo_matmul_f16(const __half *a, const __half *b, __half *c, int n) { return matmul(a, b, c, n); }
