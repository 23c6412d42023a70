#include <ATen/Dispatch.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cmath>

#include "../checks.h"

namespace reference_cpp {
namespace {

// limit * tanh(x / limit)
at::Tensor softclip_cpu(const at::Tensor& x, double limit) {
  check_float_or_double("softclip", "x", x);
  TORCH_CHECK(limit > 0, "softclip: limit must be positive, got ", limit);
  // The iterator allocates the result: dense, in the order of the strides of x, which is what the fake (empty_like)
  // says as well. The two may differ in strides that mean nothing, of dimensions of size 1 and of tensors without
  // elements; so do torch's own elementwise ops and their fakes.
  auto iterator = at::TensorIteratorConfig().add_owned_output(at::Tensor()).add_const_input(x).build();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softclip", [&] {
    const scalar_t bound = static_cast<scalar_t>(limit);
    // strides are in bytes; the iterator calls this once for each run along its innermost dimension
    iterator.for_each([bound](char** data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const scalar_t value = *reinterpret_cast<const scalar_t*>(data[1] + i * strides[1]);
        *reinterpret_cast<scalar_t*>(data[0] + i * strides[0]) = bound * std::tanh(value / bound);
      }
    });
  });
  return iterator.output();
}

} // namespace

TORCH_LIBRARY_IMPL(reference_cpp, CPU, m) {
  m.impl("softclip", softclip_cpu);
}

} // namespace reference_cpp
