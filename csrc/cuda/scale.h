// Plain pointers only: the kernel file that implements these must compile without torch's headers.
#pragma once

#include "walk.h"

namespace reference_cpp {

// x *= s through the strides of x, on the given stream. The walk holds x as what is written and as what is read.
// Returns the result of the launch.
cudaError_t launch_scale(const Walk<2>& walk, float s, cudaStream_t stream);
cudaError_t launch_scale(const Walk<2>& walk, double s, cudaStream_t stream);

} // namespace reference_cpp
