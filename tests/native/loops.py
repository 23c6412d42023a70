"""The CUDA kernels of the reference ops and their bindings, as loops on the CPU: ``opcheck run tests.native.loops``.

What a kernel computes, through which strides, and what its binding refuses, can be run without a GPU. The sources are
copied with their launches made to loops over all blocks and threads, and registered for the CPU in place of the kernels
there; the ops' specs are then checked as they are. What is left out is what hardware does: streams, devices, threads
that run at the same time, errors that come late.

Importing this changes how `reference_ops.native` is built, so that it belongs in a process of its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import re

from reference_ops.native import _build

CSRC = _build.csrc_root()

#: Stands for what the sources include of CUDA and of torch's headers for it.
CUDA = """#pragma once
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <cmath>
#include <cstdint>
#define __global__
#define __device__
#define C10_CUDA_CHECK(call) TORCH_CHECK((call) == cudaSuccess)
using std::sqrt;
using std::tanh;
using cudaStream_t = void*;
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue };
struct Index { unsigned x = 0; };
inline thread_local Index gridDim, blockDim, blockIdx, threadIdx;
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
namespace c10::cuda {
struct CUDAGuard { explicit CUDAGuard(c10::Device) {} };
inline cudaStream_t getCurrentCUDAStream() { return nullptr; }
}
template <typename Body>
void loop(int64_t blocks, int64_t threads, Body body) {
  TORCH_CHECK(blocks > 0 && blocks < (1ll << 31) && threads > 0 && threads <= 1024, "invalid configuration");
  gridDim.x = static_cast<unsigned>(blocks);
  blockDim.x = static_cast<unsigned>(threads);
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) {
      body();
    }
  }
}
"""

_LAUNCH = re.compile(r"(\w+)<<<([^,]+), ([^,]+), 0, stream>>>\((.*)\);")


def looped(source: str) -> str:
    """A source for CUDA as one for the CPU."""
    source = re.sub(r"#include <(cuda_runtime|c10/cuda/\w+)\.h>", '#include "cuda.h"', source)
    source = source.replace("#ifdef __CUDACC__", "#if 1").replace("CUDA, m)", "CPU, m)")
    source = _LAUNCH.sub(r"loop(\2, \3, [&] { \1(\4); });", source)
    assert "<<<" not in source
    return source


def written() -> pathlib.Path:
    """A folder such as csrc, with the CUDA kernels for those of the CPU. Written once for a state of the sources."""
    texts = {path.name: path.read_text() for path in [CSRC / "checks.h", CSRC / "library.cpp"]}
    texts |= {f"negative/{path.name}": path.read_text() for path in (CSRC / "negative").iterdir()}
    texts |= {f"cpu/{path.name}": looped(path.read_text()) for path in (CSRC / "cuda").iterdir()}
    texts["cpu/cuda.h"] = CUDA
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:12]
    root = _build.build_root() / f"loops-{digest}"
    with _build._locked(root):
        for name, text in texts.items():
            # one compilation unit for each kernel, as nvcc has it: their launchers have one name
            path = root / name.replace(".cu", "_kernel.cc")
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                partial = path.with_suffix(f".{os.getpid()}")
                partial.write_text(text)
                partial.replace(path)
    return root


ROOT = written()

_kernels = tuple((f"cpu/{path.name}",) for path in sorted((ROOT / "cpu").glob("*_kernel.cc")))
_units = (("library.cpp", "cpu/*.cpp", "negative/*.cpp"), *_kernels)
_build.LIBRARIES["native"] = dataclasses.replace(_build.LIBRARIES["native"], units=_units, kernels="")
_build.csrc_root = lambda: ROOT
os.environ.setdefault("OPCHECK_BUILD_DIR", str(ROOT.parent))

from reference_ops.native import specs  # noqa: E402 - loads the library

SPECS = [spec for spec in specs.SPECS if str(spec.op).startswith("reference_cpp::")]
