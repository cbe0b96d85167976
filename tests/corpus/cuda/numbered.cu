// Compiled many times with another NUMBER: many translation units, many containers.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

__global__ void JOIN(kernel_, NUMBER)(float *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = a[i] * (NUMBER % 7) + NUMBER;
}

extern "C" int JOIN(launch_, NUMBER)(float *a, int n) {
    JOIN(kernel_, NUMBER)<<<(n + 255) / 256, 256>>>(a, n);
    return (int)cudaGetLastError();
}
