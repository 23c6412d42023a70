// Faults in reading and writing memory that the process survives.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>

#include "twice.h"

namespace broken_cpp {
namespace {

// Fault: reads data_ptr linearly and ignores strides.
at::Tensor linear_walk(const at::Tensor& x) {
  at::Tensor out = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_walk", [&] {
    const scalar_t* data = x.const_data_ptr<scalar_t>();
    scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
    // Wraps round at the end of the storage: the wrong numbers are the same on every run, and only they are the fault.
    const int64_t stored = static_cast<int64_t>(x.storage().nbytes() / sizeof(scalar_t)) - x.storage_offset();
    for (int64_t i = 0; i < out.numel(); ++i) {
      out_data[i] = data[i % std::max<int64_t>(stored, 1)] * 2;
    }
  });
  return out;
}

// Fault: writes one element of its input; the schema does not say so.
at::Tensor undeclared_write(const at::Tensor& x) {
  at::Tensor out = twice(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "undeclared_write", [&] {
    if (x.numel() > 0) {
      static_cast<scalar_t*>(x.data_ptr())[0] += 1;
    }
  });
  return out;
}

// Fault: the result is the input itself; the schema says it is a new tensor.
at::Tensor returns_input(const at::Tensor& x) {
  return x;
}

// Fault: a scratch buffer that all calls share. The second loop reads what another call may have written meanwhile.
at::Tensor shared_scratch(const at::Tensor& x) {
  // atomic, so that only the values are at fault: an ordinary vector could be freed by one call while another reads it
  static std::atomic<double> scratch[1024];
  at::Tensor packed = x.contiguous();
  at::Tensor out = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "shared_scratch", [&] {
    const scalar_t* data = packed.const_data_ptr<scalar_t>();
    scalar_t* out_data = out.mutable_data_ptr<scalar_t>();
    for (int64_t start = 0; start < out.numel(); start += 1024) {
      const int64_t size = std::min<int64_t>(1024, out.numel() - start);
      for (int64_t i = 0; i < size; ++i) {
        scratch[i].store(static_cast<double>(data[start + i]) * 2, std::memory_order_relaxed);
      }
      for (int64_t i = 0; i < size; ++i) {
        out_data[start + i] = static_cast<scalar_t>(scratch[i].load(std::memory_order_relaxed));
      }
    }
  });
  return out;
}

// Fault: a workspace of the size of the result is allocated in every call, and never freed.
at::Tensor leaks(const at::Tensor& x) {
  // volatile, or the compiler may drop an allocation that nobody uses
  char* volatile workspace = new char[x.nbytes()];
  (void)workspace;
  return twice(x);
}

} // namespace

TORCH_LIBRARY_IMPL(broken_cpp, CPU, m) {
  m.impl("linear_walk", linear_walk);
  m.impl("undeclared_write", undeclared_write);
  m.impl("returns_input", returns_input);
  m.impl("shared_scratch", shared_scratch);
  m.impl("leaks", leaks);
}

} // namespace broken_cpp
