// What the ops refuse, and how they say it: which op, which argument, what is expected, what came.
// The fakes in reference_ops/native/ops.py refuse the same inputs, so that tracing and eager agree.
#pragma once

#include <ATen/core/Tensor.h>

namespace reference_cpp {

inline void check_float_or_double(const char* op, const char* name, const at::Tensor& t) {
  TORCH_CHECK(
      t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble,
      op, ": ", name, " must be float32 or float64, got ", t.scalar_type());
}

// t must have the shape, dtype and device of the tensor called like.
inline void check_same(
    const char* op, const char* name, const at::Tensor& t, const char* like_name, const at::Tensor& like) {
  TORCH_CHECK(
      t.sizes() == like.sizes(),
      op, ": ", name, " must have the shape of ", like_name, ", ", like.sizes(), ", got ", t.sizes());
  TORCH_CHECK(
      t.scalar_type() == like.scalar_type(),
      op, ": ", name, " must have the dtype of ", like_name, ", ", like.scalar_type(), ", got ", t.scalar_type());
  TORCH_CHECK(
      t.device() == like.device(),
      op, ": ", name, " must be on the device of ", like_name, ", ", like.device(), ", got ", t.device());
}

// Several elements of an expanded tensor share memory, so writing them one by one has no meaning.
inline void check_not_expanded(const char* op, const char* name, const at::Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d) {
    TORCH_CHECK(
        t.stride(d) != 0 || t.size(d) <= 1,
        op, ": ", name, " must have memory of its own for every element, but dimension ", d, " of size ", t.size(d),
        " is expanded (stride 0); pass a clone");
  }
}

// What the kernels of an op for all devices refuse.

inline void check_running_max(const at::Tensor& x) {
  TORCH_CHECK(
      x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble || x.scalar_type() == at::kLong,
      "running_max: x must be float32, float64 or int64, got ", x.scalar_type());
  TORCH_CHECK(x.dim() >= 1, "running_max: x must have at least one dimension, got a 0-d tensor");
}

inline void check_tile_rows(const at::Tensor& x, int64_t rows) {
  TORCH_CHECK(x.dim() >= 1, "tile_rows: x must have at least one dimension, got a 0-d tensor");
  TORCH_CHECK(rows >= 0, "tile_rows: rows must not be negative, got ", rows);
  TORCH_CHECK(
      x.size(0) > 0 || rows == 0, "tile_rows: x must have a row to repeat when rows > 0, got x of shape ", x.sizes(),
      " and rows = ", rows);
}

inline void check_weighted_sum(at::TensorList xs, at::ArrayRef<double> weights) {
  // The dispatcher refuses an empty list before this does: without a tensor it has no device to go by.
  TORCH_CHECK(!xs.empty(), "weighted_sum: xs must hold at least one tensor, got an empty list");
  TORCH_CHECK(
      xs.size() == weights.size(),
      "weighted_sum: weights must hold one number per tensor, ", xs.size(), ", got ", weights.size());
  check_float_or_double("weighted_sum", "xs[0]", xs[0]);
  for (const at::Tensor& x : xs) {
    check_same("weighted_sum", "every tensor of xs", x, "xs[0]", xs[0]);
  }
}

} // namespace reference_cpp
