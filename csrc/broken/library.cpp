// Faulty ops on purpose, one fault each; nothing here may be copied. Every schema is right about shapes and dtypes and
// promises a functional op: what is wrong is what the kernel does. All fakes but meta_shape's are in
// reference_ops/broken/native.py and are right.
#include <torch/library.h>

TORCH_LIBRARY(broken_cpp, m) {
  m.def("linear_walk(Tensor x) -> Tensor");
  m.def("segfault(Tensor x) -> Tensor");
  m.def("abort(Tensor x) -> Tensor");
  m.def("undeclared_write(Tensor x) -> Tensor");
  m.def("returns_input(Tensor x) -> Tensor");
  m.def("meta_shape(Tensor x) -> Tensor");
  m.def("heap_overflow(Tensor x) -> Tensor");
  m.def("stack_overflow(Tensor x) -> Tensor");
  m.def("composite(Tensor x) -> Tensor");
  m.def("exits(Tensor x) -> Tensor");
  m.def("shared_scratch(Tensor x) -> Tensor");
  m.def("leaks(Tensor x) -> Tensor");
}
