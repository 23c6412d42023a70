#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <torch/library.h>

namespace reference_cpp {
namespace {

// Row i of the result is row i % len(x) of x. The schema says SymInt; a kernel that only ever sees real numbers may
// take int64_t, and the dispatcher converts.
at::Tensor tile_rows_cpu(const at::Tensor& x, int64_t rows) {
  TORCH_CHECK(x.dim() >= 1, "tile_rows: x must have at least one dimension, got a 0-d tensor");
  TORCH_CHECK(rows >= 0, "tile_rows: rows must not be negative, got ", rows);
  TORCH_CHECK(
      x.size(0) > 0 || rows == 0, "tile_rows: x must have a row to repeat when rows > 0, got x of shape ", x.sizes(),
      " and rows = ", rows);
  if (rows == 0) {
    auto sizes = x.sizes().vec();
    sizes[0] = 0;
    return at::empty(sizes, x.options());
  }
  const at::Tensor index = at::arange(rows, x.options().dtype(at::kLong)).remainder_(x.size(0));
  return at::index_select(x, 0, index);
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CPU, m) {
  m.impl("tile_rows", tile_rows_cpu);
}

} // namespace reference_cpp
