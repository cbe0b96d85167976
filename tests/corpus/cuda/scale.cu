// A second translation unit: its device code lies in a container of its own.
__global__ void scale_kernel(float *a, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= factor;
}

extern "C" int scale(float *a, float factor, int n) {
    scale_kernel<<<(n + 255) / 256, 256>>>(a, factor, n);
    return (int)cudaGetLastError();
}
