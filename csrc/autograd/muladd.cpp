// The derivative of muladd in C++. The other differentiable ops have theirs in Python, which is shorter.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace reference_cpp {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls the op again below the autograd keys, wherever it goes from there: a CPU or CUDA kernel, a fake, a tracer.
at::Tensor muladd_below(const at::Tensor& a, const at::Tensor& b, double c) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("reference_cpp::muladd", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&, double)>();
  const at::AutoDispatchBelowADInplaceOrView guard;
  return op.call(a, b, c);
}

struct MulAdd : torch::autograd::Function<MulAdd> {
  // Promise to compiled autograd: backward keeps all its state in saved variables.
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a, const at::Tensor& b, double c) {
    ctx->save_for_backward({a, b});
    return muladd_below(a, b, c);
  }

  // Made of differentiable ATen ops, so that the second derivative follows by itself.
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    at::Tensor grad_a, grad_b;
    if (ctx->needs_input_grad(0)) {
      grad_a = grads[0].mul(saved[1]);
    }
    if (ctx->needs_input_grad(1)) {
      grad_b = grads[0].mul(saved[0]);
    }
    return {grad_a, grad_b, at::Tensor()}; // c is a number: no gradient
  }
};

at::Tensor muladd_autograd(const at::Tensor& a, const at::Tensor& b, double c) {
  return MulAdd::apply(a, b, c);
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, Autograd, m) {
  m.impl("muladd", muladd_autograd);
}

} // namespace reference_cpp
