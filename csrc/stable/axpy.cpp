// An op against torch's stable ABI: no ATen, no c10, no torch/library.h. The library that comes out works with later
// versions of torch unchanged, so it has a namespace of its own and is built apart. The build asks for the stable
// interface of torch 2.10 (TORCH_TARGET_VERSION), whatever the version of the headers.
#include "axpy.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

namespace reference_stable {
namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

template <typename T>
void axpy_loop(const Tensor& x, const Tensor& y, double a, const Tensor& out) {
  const T* x_data = static_cast<const T*>(x.data_ptr());
  const T* y_data = static_cast<const T*>(y.data_ptr());
  T* out_data = static_cast<T*>(out.data_ptr());
  const int64_t n = out.numel();
  for (int64_t i = 0; i < n; ++i) {
    out_data[i] = static_cast<T>(a) * x_data[i] + y_data[i];
  }
}

// a * x + y
Tensor axpy_cpu(const Tensor& x, const Tensor& y, double a) {
  check_axpy(x, y);
  const Tensor x_packed = torch::stable::contiguous(x);
  const Tensor y_packed = torch::stable::contiguous(y);
  const Tensor out = torch::stable::new_empty(x, x.sizes());
  if (x.scalar_type() == ScalarType::Float) {
    axpy_loop<float>(x_packed, y_packed, a, out);
  } else {
    axpy_loop<double>(x_packed, y_packed, a, out);
  }
  return out;
}

} // namespace

STABLE_TORCH_LIBRARY(reference_stable, m) {
  m.def("axpy(Tensor x, Tensor y, float a) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(reference_stable, CPU, m) {
  m.impl("axpy", TORCH_BOX(&axpy_cpu));
}

} // namespace reference_stable
