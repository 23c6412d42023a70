// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reference_cpp {

// The Euclidean norm of each of `rows` packed rows of `width` elements, on the given stream; 0 where width is 0. Returns
// the result of the launch.
cudaError_t launch_row_norms(const float* x, float* out, int64_t rows, int64_t width, cudaStream_t stream);
cudaError_t launch_row_norms(const double* x, double* out, int64_t rows, int64_t width, cudaStream_t stream);

} // namespace reference_cpp
