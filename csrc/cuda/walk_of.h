// From torch's iterator to what a kernel is handed.
#pragma once

#include <ATen/TensorIterator.h>

#include "walk.h"

namespace reference_cpp {

// The tensors of an iterator, outputs first. It has broken nothing down to 32-bit pieces, as ATen's kernels would have
// it: a Walk counts in 64 bits.
template <int N>
Walk<N> walk_of(const char* op, const at::TensorIteratorBase& iterator) {
  TORCH_INTERNAL_ASSERT(iterator.ntensors() == N);
  TORCH_CHECK(
      iterator.ndim() <= kMostDims, op, ": tensors may have ", kMostDims, " dimensions that cannot be merged, got ",
      iterator.ndim());
  Walk<N> walk;
  walk.n = iterator.numel();
  walk.dims = iterator.ndim();
  for (int d = 0; d < walk.dims; ++d) {
    walk.sizes[d] = iterator.shape()[d];
  }
  for (int k = 0; k < N; ++k) {
    walk.data[k] = static_cast<char*>(iterator.data_ptr(k));
    for (int d = 0; d < walk.dims; ++d) {
      walk.strides[k][d] = iterator.strides(k)[d];
    }
  }
  return walk;
}

} // namespace reference_cpp
