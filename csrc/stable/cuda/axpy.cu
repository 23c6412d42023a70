#include "axpy.h"

#include "../../cuda/grid.h"

namespace reference_stable {
namespace {

template <typename T>
__global__ void axpy_kernel(const T* x, const T* y, T a, T* out, int64_t n) {
  for (int64_t i = reference_cpp::first_index(); i < n; i += reference_cpp::index_step()) {
    out[i] = a * x[i] + y[i];
  }
}

template <typename T>
cudaError_t launch(const T* x, const T* y, T a, T* out, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  axpy_kernel<<<reference_cpp::blocks_for(n), reference_cpp::kThreads, 0, stream>>>(x, y, a, out, n);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_axpy(const float* x, const float* y, float a, float* out, int64_t n, cudaStream_t stream) {
  return launch(x, y, a, out, n, stream);
}

cudaError_t launch_axpy(const double* x, const double* y, double a, double* out, int64_t n, cudaStream_t stream) {
  return launch(x, y, a, out, n, stream);
}

} // namespace reference_stable
