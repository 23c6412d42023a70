#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

at::Tensor weighted_sum_cpu(at::TensorList xs, at::ArrayRef<double> weights) {
  check_weighted_sum(xs, weights);
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
