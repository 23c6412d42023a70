#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

// out keeps its shape and strides: unlike ATen's out= functions this one never resizes.
void add_checked(const char* op, const at::Tensor& a, const at::Tensor& b, at::Tensor out) {
  check_same(op, "out", out, "a", a);
  check_not_expanded(op, "out", out);
  at::add_out(out, a, b);
}

void check_inputs(const char* op, const at::Tensor& a, const at::Tensor& b) {
  check_float_or_double(op, "a", a);
  check_same(op, "b", b, "a", a);
}

at::Tensor plus_cpu(const at::Tensor& a, const at::Tensor& b) {
  check_inputs("plus", a, b);
  at::Tensor out = at::empty(a.sizes(), a.options());
  add_checked("plus", a, b, out);
  return out;
}

at::Tensor& plus_out_cpu(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  check_inputs("plus.out", a, b);
  add_checked("plus.out", a, b, out);
  return out;
}

void plus_into_cpu(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  check_inputs("plus_into", a, b);
  add_checked("plus_into", a, b, out);
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CPU, m) {
  m.impl("plus", plus_cpu);
  m.impl("plus.out", plus_out_cpu);
  m.impl("plus_into", plus_into_cpu);
}

} // namespace reference_cpp
