#include "row_norms.h"

#include "grid.h"

namespace reference_cpp {
namespace {

// One thread adds up one row, so that the order of the terms is always the same. Slow for a few long rows: speed is not
// what it is here for.
template <typename T>
__global__ void row_norms_kernel(const T* x, T* out, int64_t rows, int64_t width) {
  for (int64_t row = first_index(); row < rows; row += index_step()) {
    // double, so that the squares of large float32 values do not overflow
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      const double value = static_cast<double>(x[row * width + i]);
      sum += value * value;
    }
    out[row] = static_cast<T>(sqrt(sum));
  }
}

template <typename T>
cudaError_t launch(const T* x, T* out, int64_t rows, int64_t width, cudaStream_t stream) {
  if (rows == 0) {
    return cudaSuccess;
  }
  row_norms_kernel<<<blocks_for(rows), kThreads, 0, stream>>>(x, out, rows, width);
  return cudaGetLastError();
}

} // namespace

cudaError_t launch_row_norms(const float* x, float* out, int64_t rows, int64_t width, cudaStream_t stream) {
  return launch(x, out, rows, width, stream);
}

cudaError_t launch_row_norms(const double* x, double* out, int64_t rows, int64_t width, cudaStream_t stream) {
  return launch(x, out, rows, width, stream);
}

} // namespace reference_cpp
