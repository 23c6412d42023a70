// Faults in what is registered for which dispatch key.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "twice.h"

namespace broken_cpp {
namespace {

at::Tensor meta_shape_cpu(const at::Tensor& x) {
  TORCH_CHECK(x.dim() >= 1, "meta_shape: x must have at least one dimension, got a 0-d tensor");
  return twice(x);
}

// Fault: the Meta kernel says that the result has one row more than it has.
at::Tensor meta_shape_meta(const at::Tensor& x) {
  TORCH_CHECK(x.dim() >= 1, "meta_shape: x must have at least one dimension, got a 0-d tensor");
  auto sizes = x.sym_sizes().vec();
  sizes[0] = sizes[0] + 1;
  return at::empty_symint(sizes, x.options());
}

// Fault: registered as CompositeImplicitAutograd, so every tracer looks inside an op that is meant to be opaque.
at::Tensor composite(const at::Tensor& x) {
  return x.mul(2).contiguous();
}

} // namespace

TORCH_LIBRARY_IMPL(broken_cpp, CPU, m) {
  m.impl("meta_shape", meta_shape_cpu);
}

TORCH_LIBRARY_IMPL(broken_cpp, Meta, m) {
  m.impl("meta_shape", meta_shape_meta);
}

TORCH_LIBRARY_IMPL(broken_cpp, CompositeImplicitAutograd, m) {
  m.impl("composite", composite);
}

} // namespace broken_cpp
