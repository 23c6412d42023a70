// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include "walk.h"

namespace reference_cpp {

// out = sign * (a + b), through the strides of all three, on the given stream. The walk holds out, a, b; sign is 1 or
// -1. Returns the result of the launch.
cudaError_t launch_plus(const Walk<3>& walk, float sign, cudaStream_t stream);
cudaError_t launch_plus(const Walk<3>& walk, double sign, cudaStream_t stream);

} // namespace reference_cpp
