// Device code that calls into add_device.cu, which only a device link (-rdc=true) can do.
extern __device__ float add_device(float a, float b);

__global__ void twice_kernel(float *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = add_device(a[i], a[i]);
}

extern "C" int twice(float *a, int n) {
    twice_kernel<<<(n + 255) / 256, 256>>>(a, n);
    return (int)cudaGetLastError();
}

extern "C" int answer(void) { return 42; }
