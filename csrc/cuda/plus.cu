#include "plus.h"

#include "grid.h"

namespace reference_cpp {
namespace {

template <typename T>
__global__ void plus_kernel(Walk<3> walk, T sign) {
  for (int64_t i = first_index(); i < walk.n; i += index_step()) {
    *element<T>(walk, 0, i) = sign * (*element<const T>(walk, 1, i) + *element<const T>(walk, 2, i));
  }
}

template <typename T>
cudaError_t launch(const Walk<3>& walk, T sign, cudaStream_t stream) {
  if (walk.n == 0) {
    return cudaSuccess;
  }
  plus_kernel<<<blocks_for(walk.n), kThreads, 0, stream>>>(walk, sign);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_plus(const Walk<3>& walk, float sign, cudaStream_t stream) {
  return launch(walk, sign, stream);
}

cudaError_t launch_plus(const Walk<3>& walk, double sign, cudaStream_t stream) {
  return launch(walk, sign, stream);
}

} // namespace reference_cpp
