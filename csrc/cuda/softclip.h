// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include "walk.h"

namespace reference_cpp {

// out = limit * tanh(x / limit) through the strides of both, on the given stream. The walk holds out, x. Returns the
// result of the launch.
cudaError_t launch_softclip(const Walk<2>& walk, float limit, cudaStream_t stream);
cudaError_t launch_softclip(const Walk<2>& walk, double limit, cudaStream_t stream);

} // namespace reference_cpp
