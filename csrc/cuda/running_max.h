// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reference_cpp {

// The greatest element so far along each of `rows` packed rows of `width` elements, on the given stream. A NaN stays.
// Returns the result of the launch.
cudaError_t launch_running_max(const float* x, float* out, int64_t rows, int64_t width, cudaStream_t stream);
cudaError_t launch_running_max(const double* x, double* out, int64_t rows, int64_t width, cudaStream_t stream);
cudaError_t launch_running_max(const int64_t* x, int64_t* out, int64_t rows, int64_t width, cudaStream_t stream);

} // namespace reference_cpp
