// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reference_stable {

// out[i] = a * x[i] + y[i] for n elements, on the given stream. Returns the result of the launch.
cudaError_t launch_axpy(const float* x, const float* y, float a, float* out, int64_t n, cudaStream_t stream);
cudaError_t launch_axpy(const double* x, const double* y, double a, double* out, int64_t n, cudaStream_t stream);

} // namespace reference_stable
