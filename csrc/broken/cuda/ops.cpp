// Kernels for CUDA with one fault each, as one finds them; nothing here may be copied, except `doubled`, which is right.
// The schemas, the kernels for the CPU and the fakes are in reference_ops/broken/cuda.py, and are right. The ops return
// x * 2 in new and packed memory, if nothing else is said.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "kernels.h"

namespace broken_cuda {
namespace {

using Launch = cudaError_t (*)(const float*, float*, int64_t, cudaStream_t);

at::Tensor packed(const at::Tensor& x) {
  TORCH_CHECK(x.scalar_type() == at::kFloat, "x must be float32, got ", x.scalar_type());
  return x.contiguous();
}

at::Tensor like(const at::Tensor& x) {
  return at::empty(x.sizes(), x.options());
}

// Queues a kernel of the usual form. The caller has set the device.
void queue(Launch launch, const at::Tensor& x, const at::Tensor& out, c10::cuda::CUDAStream stream) {
  C10_CUDA_CHECK(launch(x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), out.numel(), stream));
}

// All that a binding owes, for a kernel that may be at fault.
template <Launch kLaunch>
at::Tensor bound(const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor source = packed(x);
  at::Tensor out = like(x);
  queue(kLaunch, source, out, c10::cuda::getCurrentCUDAStream());
  return out;
}

// Fault: the kernel is on the default stream of the device, whatever the current one is.
at::Tensor default_stream(const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor source = packed(x);
  at::Tensor out = like(x);
  queue(launch_double, source, out, c10::cuda::getDefaultCUDAStream());
  return out;
}

// Fault: no guard, so that the kernel is on the device that is current, and on a stream of that.
at::Tensor no_guard(const at::Tensor& x) {
  const at::Tensor source = packed(x);
  at::Tensor out = like(x);
  queue(launch_double, source, out, c10::cuda::getCurrentCUDAStream());
  return out;
}

// Fault: nobody asks whether the kernel was launched, which it is not for more than 1024 elements.
at::Tensor unchecked_launch(const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor source = packed(x);
  at::Tensor out = like(x);
  launch_double_unchecked(
      source.const_data_ptr<float>(), out.mutable_data_ptr<float>(), out.numel(), c10::cuda::getCurrentCUDAStream());
  return out;
}

// Fault: the host waits for the kernel, which nothing can do while a graph is captured.
at::Tensor waits_for_kernel(const at::Tensor& x) {
  const at::Tensor out = bound<launch_double>(x);
  const c10::cuda::CUDAGuard guard(x.device());
  C10_CUDA_CHECK(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream()));
  return out;
}

// x + by. Fault: a 64-bit number is passed on as int.
at::Tensor narrow_number(const at::Tensor& x, int64_t by) {
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor source = packed(x);
  at::Tensor out = like(x);
  C10_CUDA_CHECK(launch_shift(
      source.const_data_ptr<float>(), static_cast<int>(by), out.mutable_data_ptr<float>(), out.numel(),
      c10::cuda::getCurrentCUDAStream()));
  return out;
}

// The sum of x over its first dimension. Fault: the spec says that it is deterministic.
at::Tensor any_order(const at::Tensor& x) {
  TORCH_CHECK(x.dim() > 0, "x must have at least one dimension, got a 0-d tensor");
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor source = packed(x);
  at::Tensor out = at::zeros(x.sizes().slice(1), x.options());
  C10_CUDA_CHECK(launch_columns(
      source.const_data_ptr<float>(), out.mutable_data_ptr<float>(), out.numel(), source.numel(),
      c10::cuda::getCurrentCUDAStream()));
  return out;
}

} // namespace

TORCH_LIBRARY_IMPL(broken_cuda, CUDA, m) {
  m.impl("doubled", bound<launch_double>);
  m.impl("default_stream", default_stream);
  m.impl("no_guard", no_guard);
  m.impl("narrow_index", bound<launch_double_narrow>);
  m.impl("narrow_number", narrow_number);
  m.impl("unchecked_launch", unchecked_launch);
  m.impl("waits_for_kernel", waits_for_kernel);
  m.impl("tail_unwritten", bound<launch_double_fours>);
  m.impl("aligned_only", bound<launch_double_aligned>);
  m.impl("beyond_the_end", bound<launch_double_far>);
  m.impl("any_order", any_order);
}

} // namespace broken_cuda
