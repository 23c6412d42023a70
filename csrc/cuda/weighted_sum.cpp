#include "weighted_sum.h"

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

// One launch for each tensor, in the order of the list: the terms are added in that order, always.
at::Tensor weighted_sum_cuda(at::TensorList xs, at::ArrayRef<double> weights) {
  check_weighted_sum(xs, weights);
  // the tensors may be on another device than the current one: the guard comes before the allocation and the stream
  const c10::cuda::CUDAGuard guard(xs[0].device());
  at::Tensor out = at::zeros(xs[0].sizes(), xs[0].options());
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "weighted_sum", [&] {
    for (size_t k = 0; k < xs.size(); ++k) {
      const at::Tensor packed = xs[k].contiguous();
      C10_CUDA_CHECK(launch_add_weighted(
          packed.const_data_ptr<scalar_t>(), static_cast<scalar_t>(weights[k]), out.mutable_data_ptr<scalar_t>(),
          out.numel(), c10::cuda::getCurrentCUDAStream()));
    }
  });
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CUDA, m) {
  m.impl("weighted_sum", weighted_sum_cuda);
}

} // namespace reference_cpp
