// What the kernels of axpy refuse, on any device. The fake in reference_ops/native/ops.py refuses the same.
#pragma once

#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <cstdint>

namespace reference_stable {

inline void check_axpy(const torch::stable::Tensor& x, const torch::stable::Tensor& y) {
  using torch::headeronly::ScalarType;
  const ScalarType dtype = x.scalar_type();
  STD_TORCH_CHECK(
      dtype == ScalarType::Float || dtype == ScalarType::Double,
      "axpy: x must be float32 or float64, got ", torch::headeronly::toString(dtype));
  STD_TORCH_CHECK(
      y.scalar_type() == dtype, "axpy: y must have the dtype of x, ", torch::headeronly::toString(dtype), ", got ",
      torch::headeronly::toString(y.scalar_type()));
  STD_TORCH_CHECK(y.device() == x.device(), "axpy: y must be on the device of x, and is not");
  STD_TORCH_CHECK(y.dim() == x.dim(), "axpy: y must have as many dimensions as x, ", x.dim(), ", got ", y.dim());
  for (int64_t d = 0; d < x.dim(); ++d) {
    STD_TORCH_CHECK(
        y.size(d) == x.size(d),
        "axpy: y must have the shape of x, but dimension ", d, " is ", y.size(d), " and not ", x.size(d));
  }
}

} // namespace reference_stable
