// Every schema of the namespace reference_cpp, in one place. Kernels are registered elsewhere: the folder a file
// lies in is the dispatch key (cpu, cuda, meta, autograd, negative); fakes, vmap rules and the other derivatives are in
// reference_ops/native/ops.py. Every op has a kernel for the CPU and one for CUDA.
#include <torch/library.h>

TORCH_LIBRARY(reference_cpp, m) {
  // The ordinary functional op: raw pointers to contiguous copies, derivative in C++.
  m.def("muladd(Tensor a, Tensor b, float c) -> Tensor");

  // Mutates its argument and returns nothing: strides, version counter, functionalization.
  m.def("scale_(Tensor(a!) x, float s) -> ()");

  // Two overloads of one name, one of them out=. An op that returns an argument it mutates can't be functionalized,
  // so torch.compile refuses plus.out; plus_into writes as well and returns nothing, which works everywhere.
  m.def("plus(Tensor a, Tensor b) -> Tensor");
  m.def("plus.out(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)");
  m.def("plus_into(Tensor a, Tensor b, Tensor(a!) out) -> ()");

  // A list of tensors next to a list of numbers, with a gradient for each tensor of the list.
  m.def("weighted_sum(Tensor[] xs, float[] weights) -> Tensor");

  // The size of the result is an argument: SymInt keeps it symbolic under dynamic shapes. Its fake is a Meta kernel.
  m.def("tile_rows(Tensor x, SymInt rows) -> Tensor");

  // A reduction that drops a dimension. Its fake is a Meta kernel as well.
  m.def("row_norms(Tensor x) -> Tensor");

  // Walks strides through TensorIterator; the result keeps the memory format of x.
  m.def("softclip(Tensor x, float limit) -> Tensor");

  // Calls .contiguous() first, serves an integer dtype too.
  m.def("running_max(Tensor x) -> Tensor");
}
