// Kernels that count elements: one in 32 bits, one in 64.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace broken_cpp {
namespace {

template <typename Count>
at::Tensor inverted(const at::Tensor& x) {
  TORCH_CHECK(x.scalar_type() == at::kByte, "inverted: x must be uint8, got ", x.scalar_type());
  const at::Tensor packed = x.contiguous();
  at::Tensor out = at::empty(x.sizes(), x.options());
  const uint8_t* data = packed.const_data_ptr<uint8_t>();
  uint8_t* out_data = out.mutable_data_ptr<uint8_t>();
  const Count n = static_cast<Count>(x.numel());
  for (Count i = 0; i < n; ++i) {
    out_data[i] = static_cast<uint8_t>(~data[i]);
  }
  return out;
}

} // namespace

TORCH_LIBRARY_FRAGMENT(broken_cpp, m) {
  m.def("inverted_int(Tensor x) -> Tensor");
  m.def("inverted(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(broken_cpp, CPU, m) {
  m.impl("inverted_int", inverted<int>); // fault: more than 2**31 elements are less than none
  m.impl("inverted", inverted<int64_t>);
}

} // namespace broken_cpp
