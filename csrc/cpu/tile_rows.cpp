#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <torch/library.h>

#include "../checks.h"

namespace reference_cpp {
namespace {

// Row i of the result is row i % len(x) of x. The schema says SymInt; a kernel that only ever sees real numbers may
// take int64_t, and the dispatcher converts.
at::Tensor tile_rows_cpu(const at::Tensor& x, int64_t rows) {
  check_tile_rows(x, rows);
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
