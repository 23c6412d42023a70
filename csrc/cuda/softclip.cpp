#include "softclip.h"

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "../checks.h"
#include "walk_of.h"

namespace reference_cpp {
namespace {

at::Tensor softclip_cuda(const at::Tensor& x, double limit) {
  check_float_or_double("softclip", "x", x);
  TORCH_CHECK(limit > 0, "softclip: limit must be positive, got ", limit);
  // x may be on another device than the current one: the guard comes before the allocation and the stream
  const c10::cuda::CUDAGuard guard(x.device());
  // The iterator allocates the result, with the strides that the kernel for the CPU gives it.
  const auto iterator = at::TensorIteratorConfig().add_owned_output(at::Tensor()).add_const_input(x).build();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softclip", [&] {
    C10_CUDA_CHECK(launch_softclip(
        walk_of<2>("softclip", iterator), static_cast<scalar_t>(limit), c10::cuda::getCurrentCUDAStream()));
  });
  return iterator.output();
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CUDA, m) {
  m.impl("softclip", softclip_cuda);
}

} // namespace reference_cpp
