// Where the elements of N tensors of one shape lie in memory, for kernels that go through strides. Filled by walk_of in
// walk_of.h; this side knows nothing of torch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reference_cpp {

// As many as ATen's own kernels take. Dimensions that are dense in each other count as one.
constexpr int kMostDims = 25;

template <int N>
struct Walk {
  int64_t n = 0; // elements
  int dims = 0; // the innermost comes first
  int64_t sizes[kMostDims] = {};
  int64_t strides[N][kMostDims] = {}; // in bytes
  char* data[N] = {};
};

#ifdef __CUDACC__
// The address of element i of tensor k.
template <typename T, int N>
__device__ T* element(const Walk<N>& walk, int k, int64_t i) {
  char* at = walk.data[k];
  for (int d = 0; d < walk.dims; ++d) {
    at += i % walk.sizes[d] * walk.strides[k][d];
    i /= walk.sizes[d];
  }
  return reinterpret_cast<T*>(at);
}
#endif

} // namespace reference_cpp
