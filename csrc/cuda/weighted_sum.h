// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reference_cpp {

// out[i] += weight * x[i] for n elements, on the given stream. Returns the result of the launch.
cudaError_t launch_add_weighted(const float* x, float weight, float* out, int64_t n, cudaStream_t stream);
cudaError_t launch_add_weighted(const double* x, double weight, double* out, int64_t n, cudaStream_t stream);

} // namespace reference_cpp
