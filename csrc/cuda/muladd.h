// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reference_cpp {

// out[i] = a[i] * b[i] + c for n elements, on the given stream. Returns the result of the launch.
cudaError_t launch_muladd(const float* a, const float* b, float c, float* out, int64_t n, cudaStream_t stream);
cudaError_t launch_muladd(const double* a, const double* b, double c, double* out, int64_t n, cudaStream_t stream);

} // namespace reference_cpp
