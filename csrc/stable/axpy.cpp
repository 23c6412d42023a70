// An op against torch's stable ABI: no ATen, no c10, no torch/library.h. The library that comes out works with later
// versions of torch unchanged, so it has a namespace of its own and is built apart. The build asks for the stable
// interface of torch 2.10 (TORCH_TARGET_VERSION), whatever the version of the headers.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <cstdint>

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
  const ScalarType dtype = x.scalar_type();
  STD_TORCH_CHECK(
      dtype == ScalarType::Float || dtype == ScalarType::Double,
      "axpy: x must be float32 or float64, got ", torch::headeronly::toString(dtype));
  STD_TORCH_CHECK(
      y.scalar_type() == dtype, "axpy: y must have the dtype of x, ", torch::headeronly::toString(dtype), ", got ",
      torch::headeronly::toString(y.scalar_type()));
  STD_TORCH_CHECK(y.is_cpu(), "axpy: y must be on the device of x, cpu, and is not");
  STD_TORCH_CHECK(y.dim() == x.dim(), "axpy: y must have as many dimensions as x, ", x.dim(), ", got ", y.dim());
  for (int64_t d = 0; d < x.dim(); ++d) {
    STD_TORCH_CHECK(
        y.size(d) == x.size(d),
        "axpy: y must have the shape of x, but dimension ", d, " is ", y.size(d), " and not ", x.size(d));
  }
  const Tensor x_packed = torch::stable::contiguous(x);
  const Tensor y_packed = torch::stable::contiguous(y);
  const Tensor out = torch::stable::new_empty(x, x.sizes());
  if (dtype == ScalarType::Float) {
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
