#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

at::Tensor weighted_sum_cpu(at::TensorList xs, at::ArrayRef<double> weights) {
  // The dispatcher refuses an empty list before this does: without a tensor it has no device to go by.
  TORCH_CHECK(!xs.empty(), "weighted_sum: xs must hold at least one tensor, got an empty list");
  TORCH_CHECK(
      xs.size() == weights.size(),
      "weighted_sum: weights must hold one number per tensor, ", xs.size(), ", got ", weights.size());
  check_float_or_double("weighted_sum", "xs[0]", xs[0]);
  for (const at::Tensor& x : xs) {
    check_same("weighted_sum", "every tensor of xs", x, "xs[0]", xs[0]);
  }
  at::Tensor out = at::zeros(xs[0].sizes(), xs[0].options());
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "weighted_sum", [&] {
    scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
    const int64_t n = out.numel();
    for (size_t k = 0; k < xs.size(); ++k) {
      const at::Tensor packed = xs[k].contiguous();
      const scalar_t* data = packed.const_data_ptr<scalar_t>();
      const scalar_t weight = static_cast<scalar_t>(weights[k]);
      for (int64_t i = 0; i < n; ++i) {
        out_data[i] += weight * data[i];
      }
    }
  });
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CPU, m) {
  m.impl("weighted_sum", weighted_sum_cpu);
}

} // namespace reference_cpp
