#include "weighted_sum.h"

#include "grid.h"

namespace reference_cpp {
namespace {

template <typename T>
__global__ void add_weighted_kernel(const T* x, T weight, T* out, int64_t n) {
  for (int64_t i = first_index(); i < n; i += index_step()) {
    out[i] += weight * x[i];
  }
}

template <typename T>
cudaError_t launch(const T* x, T weight, T* out, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  add_weighted_kernel<<<blocks_for(n), kThreads, 0, stream>>>(x, weight, out, n);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_add_weighted(const float* x, float weight, float* out, int64_t n, cudaStream_t stream) {
  return launch(x, weight, out, n, stream);
}

cudaError_t launch_add_weighted(const double* x, double weight, double* out, int64_t n, cudaStream_t stream) {
  return launch(x, weight, out, n, stream);
}

} // namespace reference_cpp
