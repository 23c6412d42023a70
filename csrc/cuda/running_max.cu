#include "running_max.h"

#include "grid.h"

namespace reference_cpp {
namespace {

// One thread walks one row. Slow for a few long rows, and plain to see through: speed is not what it is here for.
template <typename T>
__global__ void running_max_kernel(const T* x, T* out, int64_t rows, int64_t width) {
  for (int64_t row = first_index(); row < rows; row += index_step()) {
    const T* source = x + row * width;
    T* target = out + row * width;
    T best = source[0];
    for (int64_t i = 0; i < width; ++i) {
      const T value = source[i];
      // value != value holds for NaN alone; once best is NaN no comparison with it is true
      if (value > best || value != value) {
        best = value;
      }
      target[i] = best;
    }
  }
}

template <typename T>
cudaError_t launch(const T* x, T* out, int64_t rows, int64_t width, cudaStream_t stream) {
  if (rows == 0 || width == 0) {
    return cudaSuccess; // nothing to do, and the kernel reads the first element of every row
  }
  running_max_kernel<<<blocks_for(rows), kThreads, 0, stream>>>(x, out, rows, width);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_running_max(const float* x, float* out, int64_t rows, int64_t width, cudaStream_t stream) {
  return launch(x, out, rows, width, stream);
}

cudaError_t launch_running_max(const double* x, double* out, int64_t rows, int64_t width, cudaStream_t stream) {
  return launch(x, out, rows, width, stream);
}

cudaError_t launch_running_max(const int64_t* x, int64_t* out, int64_t rows, int64_t width, cudaStream_t stream) {
  return launch(x, out, rows, width, stream);
}

} // namespace reference_cpp
