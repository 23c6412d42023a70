// The stable interface declares what it has for CUDA (the stream, the check of errors) only where this is defined.
#ifndef USE_CUDA
#define USE_CUDA
#endif
#include "axpy.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/ops.h>

#include "../axpy.h"

namespace reference_stable {
namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

cudaStream_t current_stream(int32_t device_index) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device_index, &stream));
  return static_cast<cudaStream_t>(stream);
}

template <typename T>
void axpy_launch(const Tensor& x, const Tensor& y, double a, const Tensor& out) {
  STD_CUDA_CHECK(launch_axpy(
      static_cast<const T*>(x.data_ptr()), static_cast<const T*>(y.data_ptr()), static_cast<T>(a),
      static_cast<T*>(out.data_ptr()), out.numel(), current_stream(x.get_device_index())));
}

// a * x + y
Tensor axpy_cuda(const Tensor& x, const Tensor& y, double a) {
  check_axpy(x, y);
  // x may be on another device than the current one: the guard comes before the allocation and the stream
  const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
  const Tensor x_packed = torch::stable::contiguous(x);
  const Tensor y_packed = torch::stable::contiguous(y);
  const Tensor out = torch::stable::new_empty(x, x.sizes());
  if (x.scalar_type() == ScalarType::Float) {
    axpy_launch<float>(x_packed, y_packed, a, out);
  } else {
    axpy_launch<double>(x_packed, y_packed, a, out);
  }
  return out;
}

} // namespace

STABLE_TORCH_LIBRARY_IMPL(reference_stable, CUDA, m) {
  m.impl("axpy", TORCH_BOX(&axpy_cuda));
}

} // namespace reference_stable
