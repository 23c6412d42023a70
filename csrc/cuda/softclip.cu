#include "softclip.h"

#include "grid.h"

namespace reference_cpp {
namespace {

template <typename T>
__global__ void softclip_kernel(Walk<2> walk, T limit) {
  for (int64_t i = first_index(); i < walk.n; i += index_step()) {
    *element<T>(walk, 0, i) = limit * tanh(*element<const T>(walk, 1, i) / limit);
  }
}

template <typename T>
cudaError_t launch(const Walk<2>& walk, T limit, cudaStream_t stream) {
  if (walk.n == 0) {
    return cudaSuccess;
  }
  softclip_kernel<<<blocks_for(walk.n), kThreads, 0, stream>>>(walk, limit);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_softclip(const Walk<2>& walk, float limit, cudaStream_t stream) {
  return launch(walk, limit, stream);
}

cudaError_t launch_softclip(const Walk<2>& walk, double limit, cudaStream_t stream) {
  return launch(walk, limit, stream);
}

} // namespace reference_cpp
