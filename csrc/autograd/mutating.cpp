// What an op that writes into its arguments owes to autograd: a clear refusal where there is no derivative, and the
// version counter. torch offers autogradNotImplementedFallback and autogradNotImplementedInplaceOrViewFallback for
// this, but these look at what an op returns, and do neither for an op that returns nothing.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <initializer_list>

namespace reference_cpp {
namespace {

// Without this, forward would pass and backward would take the overwritten tensor for what it was before.
void check_no_grad(const char* op, std::initializer_list<at::Tensor> tensors) {
  if (!at::GradMode::is_enabled()) {
    return;
  }
  for (const at::Tensor& t : tensors) {
    TORCH_CHECK(
        !t.requires_grad(),
        op, " has no derivative, and a tensor it was given requires grad; call it under torch.no_grad(), or detach the "
        "tensor");
  }
}

// Autograd compares counters to refuse a backward whose saved tensors have been overwritten. A kernel that writes
// through a pointer bumps nothing, and neither does an ATen call below this key. Inference tensors have no counter, and
// never come here.
void bump_version(const at::Tensor& t) {
  t.unsafeGetTensorImpl()->bump_version();
}

template <typename Signature>
auto find(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

auto scale_op() {
  static const auto op = find<void(const at::Tensor&, double)>("reference_cpp::scale_", "");
  return op;
}

auto plus_into_op() {
  static const auto op =
      find<void(const at::Tensor&, const at::Tensor&, const at::Tensor&)>("reference_cpp::plus_into", "");
  return op;
}

auto plus_out_op() {
  static const auto op =
      find<at::Tensor&(const at::Tensor&, const at::Tensor&, at::Tensor&)>("reference_cpp::plus", "out");
  return op;
}

// ------------------------------------------------------------------ Autograd: refuse, or go on below

void scale_autograd(const at::Tensor& x, double s) {
  check_no_grad("scale_", {x});
  const at::AutoDispatchBelowAutograd guard;
  scale_op().call(x, s);
}

void plus_into_autograd(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  check_no_grad("plus_into", {a, b, out});
  const at::AutoDispatchBelowAutograd guard;
  plus_into_op().call(a, b, out);
}

at::Tensor& plus_out_autograd(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  check_no_grad("plus.out", {a, b, out});
  const at::AutoDispatchBelowAutograd guard;
  return plus_out_op().call(a, b, out);
}

// ------------------------------------------------------------------ ADInplaceOrView: write, then count

void scale_inplace(const at::Tensor& x, double s) {
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    scale_op().call(x, s);
  }
  bump_version(x);
}

void plus_into_inplace(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    plus_into_op().call(a, b, out);
  }
  bump_version(out);
}

at::Tensor& plus_out_inplace(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    plus_out_op().call(a, b, out);
  }
  bump_version(out);
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, Autograd, m) {
  m.impl("scale_", scale_autograd);
  m.impl("plus_into", plus_into_autograd);
  m.impl("plus.out", plus_out_autograd);
}

TORCH_LIBRARY_IMPL(reference_cpp, ADInplaceOrView, m) {
  m.impl("scale_", scale_inplace);
  m.impl("plus_into", plus_into_inplace);
  m.impl("plus.out", plus_out_inplace);
}

} // namespace reference_cpp
