#include "muladd.h"

namespace reference_cpp {
namespace {

// 64-bit indices: a tensor may hold more than 2^31 elements. The loop lets a bounded grid cover any n.
template <typename T>
__global__ void muladd_kernel(const T* a, const T* b, T c, T* out, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    out[i] = a[i] * b[i] + c;
  }
}

template <typename T>
cudaError_t launch(const T* a, const T* b, T c, T* out, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess; // a grid of zero blocks is an invalid configuration
  }
  constexpr int64_t threads = 256;
  constexpr int64_t most_blocks = 65535;
  const int64_t needed = (n + threads - 1) / threads;
  const auto blocks = static_cast<unsigned>(needed < most_blocks ? needed : most_blocks);
  muladd_kernel<<<blocks, threads, 0, stream>>>(a, b, c, out, n);
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
