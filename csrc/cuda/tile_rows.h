// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reference_cpp {

// out[i] = x[i % period] for n elements of `size` bytes (1, 2, 4 or 8), whatever they mean, on the given stream. Returns
// the result of the launch.
cudaError_t launch_tile(const void* x, void* out, int64_t period, int64_t n, int64_t size, cudaStream_t stream);

} // namespace reference_cpp
