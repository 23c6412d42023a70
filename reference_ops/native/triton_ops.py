"""An op with a Triton kernel, by ``torch.library.triton_op``: torch.compile sees the kernel and may fuse around it.

Without Triton or a GPU nothing is registered, and the spec says why.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python.data import normal


def _missing() -> dict[str, str]:
    try:
        import triton  # noqa: F401
    except ImportError as error:
        return {"triton": f"Triton cannot be imported ({error}): pip install triton"}
    # device_count, and not is_available: it leaves this process free to fork
    if torch.cuda.device_count() == 0:
        return {"triton": "Triton has no GPU to compile for: torch sees none"}
    return {}


#: As for ``OpSpec(unavailable=...)``.
UNAVAILABLE = _missing()

if not UNAVAILABLE:
    import triton
    import triton.language as tl

    @triton.jit
    def _leaky_kernel(x, out, slope, n, BLOCK: tl.constexpr):  # noqa: N803 - Triton's custom for compile-time constants
        # 64-bit: a program's first element may lie beyond 2^31
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        value = tl.load(x + at, mask=inside)
        tl.store(out + at, tl.where(value >= 0, value, value * slope), mask=inside)

    @torch.library.triton_op("reference_triton::leaky", mutates_args={})
    def leaky(x: Tensor, slope: float) -> Tensor:
        """x where x >= 0, else x * slope; elementwise, any shape, contiguous result."""
        torch._check(
            x.dtype in (torch.float32, torch.float16, torch.bfloat16),
            lambda: f"leaky: x must be float32, float16 or bfloat16, got {x.dtype}",
        )
        packed = x.contiguous()
        out = packed.new_empty(packed.shape)
        n = packed.numel()
        if n > 0:  # a grid of zero programs is an error
            torch.library.wrap_triton(_leaky_kernel)[(triton.cdiv(n, 1024),)](packed, out, slope, n, BLOCK=1024)
        return out

    def _setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.slope = inputs[1]

    def _backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x >= 0, grad, grad * ctx.slope), None

    leaky.register_autograd(_backward, setup_context=_setup)


def _samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(37, device=device, dtype=dtype), 0.1), name="vector")
    yield Sample((normal(3, 5, device=device, dtype=dtype).t(), 0.0), name="transposed")
    yield Sample((normal(2, 1030, device=device, dtype=dtype), 0.25), name="more than one block")


def _reference(x: Tensor, slope: float) -> Tensor:
    return torch.where(x >= 0, x, x * slope).contiguous()


SPEC = OpSpec(
    "reference_triton::leaky",
    samples=_samples,
    reference=_reference,
    devices=("cuda",),
    dtypes=(torch.float32, torch.bfloat16),
    # Not opaque, on purpose: that is what triton_op is for.
    opaque=False,
    unavailable=UNAVAILABLE,
    about="Triton kernel through triton_op and wrap_triton, visible to the compiler",
)
