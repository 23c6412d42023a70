#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

// The greatest element so far along the last dimension. A NaN stays, as in torch.cummax.
at::Tensor running_max_cpu(const at::Tensor& x) {
  check_running_max(x);
  const at::Tensor packed = x.contiguous();
  at::Tensor out = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES_AND(at::kLong, x.scalar_type(), "running_max", [&] {
    const scalar_t* data = packed.const_data_ptr<scalar_t>();
    scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
    const int64_t width = x.size(-1);
    const int64_t total = x.numel();
    for (int64_t start = 0; start < total; start += width) {
      scalar_t best = data[start];
      for (int64_t i = start; i < start + width; ++i) {
        const scalar_t value = data[i];
        // value != value holds for NaN alone; once best is NaN no comparison with it is true
        if (value > best || value != value) {
          best = value;
        }
        out_data[i] = best;
      }
    }
  });
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CPU, m) {
  m.impl("running_max", running_max_cpu);
}

} // namespace reference_cpp
