#include "tile_rows.h"

#include "grid.h"

namespace reference_cpp {
namespace {

template <typename T>
__global__ void tile_kernel(const T* x, T* out, int64_t period, int64_t n) {
  for (int64_t i = first_index(); i < n; i += index_step()) {
    out[i] = x[i % period];
  }
}

template <typename T>
cudaError_t launch(const void* x, void* out, int64_t period, int64_t n, cudaStream_t stream) {
  tile_kernel<<<blocks_for(n), kThreads, 0, stream>>>(static_cast<const T*>(x), static_cast<T*>(out), period, n);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_tile(const void* x, void* out, int64_t period, int64_t n, int64_t size, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  switch (size) {
    case 1:
      return launch<uint8_t>(x, out, period, n, stream);
    case 2:
      return launch<uint16_t>(x, out, period, n, stream);
    case 4:
      return launch<uint32_t>(x, out, period, n, stream);
    case 8:
      return launch<uint64_t>(x, out, period, n, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

} // namespace reference_cpp
