// What most of the faulty ops would do if they were right: a new contiguous tensor of x * 2.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>

namespace broken_cpp {

inline at::Tensor twice(const at::Tensor& x) {
  // below autograd: these ops have no derivative, and the ATen calls inside must not lend them one
  const at::AutoDispatchBelowADInplaceOrView guard;
  return x.mul(2).contiguous();
}

} // namespace broken_cpp
