#include "row_norms.h"

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

at::Tensor row_norms_cuda(const at::Tensor& x) {
  check_float_or_double("row_norms", "x", x);
  TORCH_CHECK(x.dim() >= 1, "row_norms: x must have at least one dimension, got a 0-d tensor");
  // x may be on another device than the current one: the guard comes before the allocation and the stream
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor packed = x.contiguous();
  at::Tensor out = at::empty(x.sizes().slice(0, x.dim() - 1), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "row_norms", [&] {
    C10_CUDA_CHECK(launch_row_norms(
        packed.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), out.numel(), x.size(-1),
        c10::cuda::getCurrentCUDAStream()));
  });
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CUDA, m) {
  m.impl("row_norms", row_norms_cuda);
}

} // namespace reference_cpp
