// The stream comes from c10: ATen/cuda/CUDAContext.h has it too, but wants the headers of cuBLAS and cuSPARSE.
#include "muladd.h"

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

at::Tensor muladd_cuda(const at::Tensor& a, const at::Tensor& b, double c) {
  check_float_or_double("muladd", "a", a);
  check_same("muladd", "b", b, "a", a);
  // a may be on another device than the current one: the guard comes before the allocation and the stream
  const c10::cuda::CUDAGuard guard(a.device());
  const at::Tensor a_packed = a.contiguous();
  const at::Tensor b_packed = b.contiguous();
  at::Tensor out = at::empty(a.sizes(), a.options());
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "muladd", [&] {
    C10_CUDA_CHECK(launch_muladd(
        a_packed.const_data_ptr<scalar_t>(), b_packed.const_data_ptr<scalar_t>(), static_cast<scalar_t>(c),
        out.mutable_data_ptr<scalar_t>(), out.numel(), c10::cuda::getCurrentCUDAStream()));
  });
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CUDA, m) {
  m.impl("muladd", muladd_cuda);
}

} // namespace reference_cpp
