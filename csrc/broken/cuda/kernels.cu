#include "kernels.h"

#include "../../cuda/grid.h"

namespace broken_cuda {
namespace {

using reference_cpp::blocks_for;
using reference_cpp::first_index;
using reference_cpp::index_step;
using reference_cpp::kThreads;

__global__ void double_kernel(const float* x, float* out, int64_t n) {
  for (int64_t i = first_index(); i < n; i += index_step()) {
    out[i] = x[i] * 2;
  }
}

// Fault: int.
__global__ void narrow_kernel(const float* x, float* out, int n) {
  for (int i = static_cast<int>(first_index()); i < n; i += static_cast<int>(index_step())) {
    out[i] = x[i] * 2;
  }
}

__global__ void fours_kernel(const float* x, float* out, int64_t fours) {
  for (int64_t i = first_index(); i < fours; i += index_step()) {
    for (int64_t k = i * 4; k < i * 4 + 4; ++k) {
      out[k] = x[k] * 2;
    }
  }
}

// Fault: the address of a float is taken for that of a float4.
__global__ void aligned_kernel(const float* x, float* out, int64_t n) {
  for (int64_t i = first_index(); i < n / 4; i += index_step()) {
    const float4 four = reinterpret_cast<const float4*>(x)[i];
    reinterpret_cast<float4*>(out)[i] = make_float4(four.x * 2, four.y * 2, four.z * 2, four.w * 2);
  }
  for (int64_t i = n / 4 * 4 + first_index(); i < n; i += index_step()) {
    out[i] = x[i] * 2;
  }
}

// Fault: a distance of 2^40 elements, where a GPU has no memory.
__global__ void far_kernel(const float* x, float* out, int64_t n) {
  for (int64_t i = first_index(); i < n; i += index_step()) {
    out[i] = x[(i + 1) << 40] * 2;
  }
}

__global__ void shift_kernel(const float* x, int by, float* out, int64_t n) {
  for (int64_t i = first_index(); i < n; i += index_step()) {
    out[i] = x[i] + static_cast<float>(by);
  }
}

// Fault: terms are added in the order in which threads arrive.
__global__ void columns_kernel(const float* x, float* out, int64_t width, int64_t n) {
  for (int64_t i = first_index(); i < n; i += index_step()) {
    atomicAdd(out + i % width, x[i]);
  }
}

} // namespace

cudaError_t launch_double(const float* x, float* out, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  double_kernel<<<blocks_for(n), kThreads, 0, stream>>>(x, out, n);
  return cudaGetLastError();
}

cudaError_t launch_double_narrow(const float* x, float* out, int64_t n, cudaStream_t stream) {
  const int count = static_cast<int>(n); // beyond 2^31 it is negative, or what is left of it
  if (count <= 0) {
    return cudaSuccess;
  }
  narrow_kernel<<<blocks_for(count), kThreads, 0, stream>>>(x, out, count);
  return cudaGetLastError();
}

cudaError_t launch_double_fours(const float* x, float* out, int64_t n, cudaStream_t stream) {
  if (n < 4) {
    return cudaSuccess;
  }
  fours_kernel<<<blocks_for(n / 4), kThreads, 0, stream>>>(x, out, n / 4);
  return cudaGetLastError();
}

cudaError_t launch_double_aligned(const float* x, float* out, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  aligned_kernel<<<blocks_for(n), kThreads, 0, stream>>>(x, out, n);
  return cudaGetLastError();
}

cudaError_t launch_double_far(const float* x, float* out, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  far_kernel<<<blocks_for(n), kThreads, 0, stream>>>(x, out, n);
  return cudaGetLastError();
}

void launch_double_unchecked(const float* x, float* out, int64_t n, cudaStream_t stream) {
  if (n > 0) {
    double_kernel<<<1, static_cast<unsigned>(n), 0, stream>>>(x, out, n);
  }
}

cudaError_t launch_shift(const float* x, int by, float* out, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  shift_kernel<<<blocks_for(n), kThreads, 0, stream>>>(x, by, out, n);
  return cudaGetLastError();
}

cudaError_t launch_columns(const float* x, float* out, int64_t width, int64_t n, cudaStream_t stream) {
  if (n == 0) {
    return cudaSuccess;
  }
  columns_kernel<<<blocks_for(n), kThreads, 0, stream>>>(x, out, width, n);
  return cudaGetLastError();
}

} // namespace broken_cuda
