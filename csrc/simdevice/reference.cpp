// Kernels of reference ops for the simulated device, as the ones for CUDA are: with a guard, and on the current stream.
#include "runtime.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

at::Tensor muladd_sim(const at::Tensor& a, const at::Tensor& b, double c) {
  check_float_or_double("muladd", "a", a);
  check_same("muladd", "b", b, "a", a);
  const c10::DeviceGuard guard(a.device());
  at::Tensor out = at::empty(a.sizes(), a.options());
  simdevice::launch(
      simdevice::current_stream(a.device().index()), {simdevice::View(out), simdevice::View(a), simdevice::View(b)},
      [c](const auto& t) { t[0].copy_(at::add(at::mul(t[1], t[2]), c)); });
  return out;
}

at::Tensor running_max_sim(const at::Tensor& x) {
  TORCH_CHECK(
      x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble || x.scalar_type() == at::kLong,
      "running_max: x must be float32, float64 or int64, got ", x.scalar_type());
  TORCH_CHECK(x.dim() >= 1, "running_max: x must have at least one dimension, got a 0-d tensor");
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = at::empty(x.sizes(), x.options());
  simdevice::launch(
      simdevice::current_stream(x.device().index()), {simdevice::View(out), simdevice::View(x)},
      [](const auto& t) { t[0].copy_(std::get<0>(at::cummax(t[1], -1))); });
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, PrivateUse1, m) {
  m.impl("muladd", muladd_sim);
  m.impl("running_max", running_max_sim);
}

} // namespace reference_cpp
