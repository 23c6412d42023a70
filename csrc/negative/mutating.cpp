// A tensor with a pending negation (torch._neg_view) is stored with the opposite sign. Before a kernel sees it torch
// makes a plain copy, and for an argument that is written, copies the result back. It does the latter by the returned
// tensor, so that an op that returns nothing dies of an internal assert. The ops below take such tensors as they are:
// their kernels for the CPU do all their work by ATen calls, which know about pending negations, and those for CUDA see to
// it themselves.
#include <torch/library.h>

TORCH_LIBRARY_IMPL(reference_cpp, Negative, m) {
  m.impl("scale_", torch::CppFunction::makeFallthrough());
  m.impl("plus_into", torch::CppFunction::makeFallthrough());
}
