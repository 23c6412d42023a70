#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>

#include "../checks.h"

namespace reference_cpp {
namespace {

// Euclidean norm over the last dimension.
at::Tensor row_norms_cpu(const at::Tensor& x) {
  check_float_or_double("row_norms", "x", x);
  TORCH_CHECK(x.dim() >= 1, "row_norms: x must have at least one dimension, got a 0-d tensor");
  const at::Tensor packed = x.contiguous();
  at::Tensor out = at::empty(x.sizes().slice(0, x.dim() - 1), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "row_norms", [&] {
    const scalar_t* data = packed.const_data_ptr<scalar_t>();
    scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
    const int64_t rows = out.numel();
    const int64_t width = x.size(-1);
    for (int64_t r = 0; r < rows; ++r) {
      // double, so that the squares of large float32 values do not overflow
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) {
        const double value = static_cast<double>(data[r * width + i]);
        sum += value * value;
      }
      out_data[r] = static_cast<scalar_t>(std::sqrt(sum));
    }
  });
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CPU, m) {
  m.impl("row_norms", row_norms_cpu);
}

} // namespace reference_cpp
