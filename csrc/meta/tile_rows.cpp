#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace reference_cpp {
namespace {

// The fake of tile_rows. SymInt all the way: a call of expect_int() or size() would fix the number at trace time.
at::Tensor tile_rows_meta(const at::Tensor& x, c10::SymInt rows) {
  TORCH_CHECK(x.dim() >= 1, "tile_rows: x must have at least one dimension, got a 0-d tensor");
  TORCH_SYM_CHECK(rows.sym_ge(0), "tile_rows: rows must not be negative, got ", rows);
  TORCH_SYM_CHECK(
      x.sym_size(0).sym_gt(0).sym_or(rows.sym_eq(0)),
      "tile_rows: x must have a row to repeat when rows > 0, got x of shape ", x.sym_sizes(), " and rows = ", rows);
  auto sizes = x.sym_sizes().vec();
  sizes[0] = std::move(rows);
  return at::empty_symint(sizes, x.options());
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, Meta, m) {
  m.impl("tile_rows", tile_rows_meta);
}

} // namespace reference_cpp
