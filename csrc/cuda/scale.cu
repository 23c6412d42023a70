#include "scale.h"

#include "grid.h"

namespace reference_cpp {
namespace {

template <typename T>
__global__ void scale_kernel(Walk<2> walk, T s) {
  for (int64_t i = first_index(); i < walk.n; i += index_step()) {
    *element<T>(walk, 0, i) = *element<const T>(walk, 1, i) * s;
  }
}

template <typename T>
cudaError_t launch(const Walk<2>& walk, T s, cudaStream_t stream) {
  if (walk.n == 0) {
    return cudaSuccess;
  }
  scale_kernel<<<blocks_for(walk.n), kThreads, 0, stream>>>(walk, s);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_scale(const Walk<2>& walk, float s, cudaStream_t stream) {
  return launch(walk, s, stream);
}

cudaError_t launch_scale(const Walk<2>& walk, double s, cudaStream_t stream) {
  return launch(walk, s, stream);
}

} // namespace reference_cpp
