// Plain pointers only: the kernel file that implements these must compile without torch's headers. One launch here for
// each way to be wrong, and `launch_double`, which is right. What they compute is in ops.cpp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace broken_cuda {

cudaError_t launch_double(const float* x, float* out, int64_t n, cudaStream_t stream);

// 32 bits for the count.
cudaError_t launch_double_narrow(const float* x, float* out, int64_t n, cudaStream_t stream);

// Each thread does four elements; those that are left over are nobody's.
cudaError_t launch_double_fours(const float* x, float* out, int64_t n, cudaStream_t stream);

// Reads and writes 16 bytes at a time, which an address must be a multiple of.
cudaError_t launch_double_aligned(const float* x, float* out, int64_t n, cudaStream_t stream);

// Reads rows where the kernel, and not the caller, thinks that they are.
cudaError_t launch_double_far(const float* x, float* out, int64_t n, cudaStream_t stream);

// All in one block, which has 1024 threads at most. Says nothing of the result of the launch.
void launch_double_unchecked(const float* x, float* out, int64_t n, cudaStream_t stream);

cudaError_t launch_shift(const float* x, int by, float* out, int64_t n, cudaStream_t stream);

// Adds the n elements of x, rows of a width, to what is in out, with atomics.
cudaError_t launch_columns(const float* x, float* out, int64_t width, int64_t n, cudaStream_t stream);

} // namespace broken_cuda
