// The other half of twice.cu.
__device__ float add_device(float a, float b) { return a + b; }
