#include "running_max.h"

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

at::Tensor running_max_cuda(const at::Tensor& x) {
  check_running_max(x);
  // x may be on another device than the current one: the guard comes before the allocation and the stream
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor packed = x.contiguous();
  at::Tensor out = at::empty(x.sizes(), x.options());
  const int64_t width = x.size(-1);
  const int64_t rows = width == 0 ? 0 : x.numel() / width;
  AT_DISPATCH_FLOATING_TYPES_AND(at::kLong, x.scalar_type(), "running_max", [&] {
    C10_CUDA_CHECK(launch_running_max(
        packed.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), rows, width,
        c10::cuda::getCurrentCUDAStream()));
  });
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CUDA, m) {
  m.impl("running_max", running_max_cuda);
}

} // namespace reference_cpp
