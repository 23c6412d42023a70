#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

at::Tensor row_norms_meta(const at::Tensor& x) {
  check_float_or_double("row_norms", "x", x);
  TORCH_CHECK(x.dim() >= 1, "row_norms: x must have at least one dimension, got a 0-d tensor");
  return at::empty_symint(x.sym_sizes().slice(0, x.dim() - 1), x.options());
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, Meta, m) {
  m.impl("row_norms", row_norms_meta);
}

} // namespace reference_cpp
