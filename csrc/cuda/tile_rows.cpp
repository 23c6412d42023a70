#include "tile_rows.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

// Row i of the result is row i % len(x) of x: in packed memory, x again and again.
at::Tensor tile_rows_cuda(const at::Tensor& x, int64_t rows) {
  check_tile_rows(x, rows);
  // x may be on another device than the current one: the guard comes before the allocation and the stream
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor packed = x.contiguous();
  auto sizes = x.sizes().vec();
  sizes[0] = rows;
  at::Tensor out = at::empty(sizes, x.options());
  // Moves bits, of any dtype. The one whose elements take 16 bytes, complex128, is moved as pairs of 8.
  const int64_t parts = x.element_size() == 16 ? 2 : 1;
  C10_CUDA_CHECK(launch_tile(
      packed.const_data_ptr(), out.mutable_data_ptr(), packed.numel() * parts, out.numel() * parts,
      x.element_size() / parts, c10::cuda::getCurrentCUDAStream()));
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CUDA, m) {
  m.impl("tile_rows", tile_rows_cuda);
}

} // namespace reference_cpp
