// Faults that take the process with them.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <unistd.h>

#include <cstdlib>

#include "twice.h"

namespace broken_cpp {
namespace {

// Fault: writes through a null pointer (SIGSEGV).
at::Tensor segfault(const at::Tensor& x) {
  // volatile, or the compiler may assume that this never runs and drop it
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
  return twice(x);
}

// Fault: ends the process with abort() where it should raise (SIGABRT).
at::Tensor aborts(const at::Tensor& x) {
  if (x.defined()) {
    std::abort();
  }
  return twice(x);
}

// Fault: writes far past the end of its own result, over whatever else is on the heap.
at::Tensor heap_overflow(const at::Tensor& x) {
  at::Tensor out = at::empty(x.sizes(), x.options());
  // A few bytes too many may go unnoticed for long; 1 GiB reaches the end of the heap and dies for certain.
  volatile char* data = static_cast<volatile char*>(out.data_ptr());
  for (int64_t i = 0; i < (int64_t{1} << 30); ++i) {
    data[i] = 0x41;
  }
  return out;
}

// The frame has to be real: noinline, a volatile array, and work left to do after the call.
__attribute__((noinline)) int64_t descend(int64_t depth) {
  volatile char frame[1024];
  frame[depth % 1024] = static_cast<char>(depth);
  if (depth < 0) {
    return 0; // never taken
  }
  return descend(depth + 1) + frame[(depth + 1) % 1024];
}

// Fault: recursion without end (SIGSEGV on the guard page of the stack).
at::Tensor stack_overflow(const at::Tensor& x) {
  return descend(x.dim()) > 0 ? x : twice(x);
}

// Fault: leaves the process with exit status 0, which looks like success from outside.
at::Tensor exits(const at::Tensor& x) {
  if (x.defined()) {
    _exit(0);
  }
  return twice(x);
}

} // namespace

TORCH_LIBRARY_IMPL(broken_cpp, CPU, m) {
  m.impl("segfault", segfault);
  m.impl("abort", aborts);
  m.impl("heap_overflow", heap_overflow);
  m.impl("stack_overflow", stack_overflow);
  m.impl("exits", exits);
}

} // namespace broken_cpp
