#include "scale.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_neg_view.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "../checks.h"
#include "walk_of.h"

namespace reference_cpp {
namespace {

// Writes through a pointer, and so bumps no version counter; see csrc/autograd/mutating.cpp.
void scale_cuda(const at::Tensor& x, double s) {
  TORCH_CHECK(
      at::isFloatingType(x.scalar_type()), "scale_: x must have a floating-point dtype, got ", x.scalar_type());
  check_not_expanded("scale_", "x", x);
  // x may be on another device than the current one: the guard comes before any memory and the stream
  const c10::cuda::CUDAGuard guard(x.device());
  // A pending negation may stay, see negative/mutating.cpp: the negative of x is scaled by s as x is.
  const at::Tensor stored = x.is_neg() ? at::_neg_view(x) : x;
  // The dtypes that ATen's mul_ takes in the kernel for the CPU. The lower precisions are computed in float, as there.
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "scale_", [&] {
    using wide_t = at::opmath_type<scalar_t>;
    const at::Tensor wide = stored.to(c10::CppTypeToScalarType<wide_t>::value); // stored itself, if it is wide already
    // refuses an x whose elements share memory, as mul_ does
    const auto iterator = at::TensorIteratorConfig().add_output(wide).add_const_input(wide).build();
    C10_CUDA_CHECK(
        launch_scale(walk_of<2>("scale_", iterator), static_cast<wide_t>(s), c10::cuda::getCurrentCUDAStream()));
    if (!wide.is_same(stored)) {
      stored.copy_(wide);
    }
  });
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CUDA, m) {
  m.impl("scale_", scale_cuda);
}

} // namespace reference_cpp
