#include "plus.h"

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "../checks.h"
#include "walk_of.h"

namespace reference_cpp {
namespace {

// out keeps its shape and strides. The iterator refuses what at::add_out refuses in the kernel for the CPU: an out that
// shares memory with itself, or in part with an input.
void add_checked_cuda(const char* op, const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  check_same(op, "out", out, "a", a);
  check_not_expanded(op, "out", out);
  // a may be on another device than the current one: the guard comes before any memory and the stream
  const c10::cuda::CUDAGuard guard(a.device());
  // plus_into is handed tensors with a pending negation as they are, see negative/mutating.cpp: what is stored in such
  // an out is the negative of the sum.
  const at::Tensor a_plain = a.resolve_neg();
  const at::Tensor b_plain = b.resolve_neg();
  const at::Tensor stored = out.is_neg() ? at::_neg_view(out) : out;
  const int sign = out.is_neg() ? -1 : 1;
  const auto iterator = at::TensorIteratorConfig()
                            .add_output(stored)
                            .add_const_input(a_plain)
                            .add_const_input(b_plain)
                            .resize_outputs(false)
                            .build();
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "plus", [&] {
    C10_CUDA_CHECK(
        launch_plus(walk_of<3>(op, iterator), static_cast<scalar_t>(sign), c10::cuda::getCurrentCUDAStream()));
  });
}

void check_inputs_cuda(const char* op, const at::Tensor& a, const at::Tensor& b) {
  check_float_or_double(op, "a", a);
  check_same(op, "b", b, "a", a);
}

at::Tensor plus_cuda(const at::Tensor& a, const at::Tensor& b) {
  check_inputs_cuda("plus", a, b);
  at::Tensor out = at::empty(a.sizes(), a.options());
  add_checked_cuda("plus", a, b, out);
  return out;
}

at::Tensor& plus_out_cuda(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  check_inputs_cuda("plus.out", a, b);
  add_checked_cuda("plus.out", a, b, out);
  return out;
}

void plus_into_cuda(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  check_inputs_cuda("plus_into", a, b);
  add_checked_cuda("plus_into", a, b, out);
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CUDA, m) {
  m.impl("plus", plus_cuda);
  m.impl("plus.out", plus_out_cuda);
  m.impl("plus_into", plus_into_cuda);
}

} // namespace reference_cpp
