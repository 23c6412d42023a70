#include "muladd.h"

#include "grid.h"

namespace reference_cpp {
namespace {

template <typename T>
__global__ void muladd_kernel(const T* a, const T* b, T c, T* out, int64_t n) {
  for (int64_t i = first_index(); i < n; i += index_step()) {
    out[i] = a[i] * b[i] + c;
  }
}

template <typename T>
cudaError_t launch(const T* a, const T* b, T c, T* out, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  muladd_kernel<<<blocks_for(n), kThreads, 0, stream>>>(a, b, c, out, n);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_muladd(const float* a, const float* b, float c, float* out, int64_t n, cudaStream_t stream) {
  return launch(a, b, c, out, n, stream);
}

cudaError_t launch_muladd(const double* a, const double* b, double c, double* out, int64_t n, cudaStream_t stream) {
  return launch(a, b, c, out, n, stream);
}

} // namespace reference_cpp
