#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

// ATen's mul_ walks the strides of x. It does not bump the version counter here: this kernel runs below the
// ADInplaceOrView key, where that belongs; see csrc/autograd/mutating.cpp.
void scale_cpu(const at::Tensor& x, double s) {
  TORCH_CHECK(
      at::isFloatingType(x.scalar_type()), "scale_: x must have a floating-point dtype, got ", x.scalar_type());
  check_not_expanded("scale_", "x", x);
  x.mul_(s);
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CPU, m) {
  m.impl("scale_", scale_cpu);
}

} // namespace reference_cpp
