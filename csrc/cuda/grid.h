// How a kernel's work is shared out: blocks of kThreads threads, and each thread goes on in steps of the whole grid until
// all is done, so that a bounded grid covers any n. All in 64 bits: a tensor may hold more than 2^31 elements.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reference_cpp {

constexpr int64_t kThreads = 256;

// n must not be 0: a grid of no blocks is an invalid configuration, so that launchers return before they come here.
inline unsigned blocks_for(int64_t n) {
  constexpr int64_t most = 65535;
  const int64_t needed = (n + kThreads - 1) / kThreads;
  return static_cast<unsigned>(needed < most ? needed : most);
}

#ifdef __CUDACC__
__device__ inline int64_t first_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline int64_t index_step() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}
#endif

} // namespace reference_cpp
