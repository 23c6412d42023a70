"""Load the C++ ops and give them their Python parts: fakes, derivatives and vmap rules.

What C++ has already is not repeated here: `tile_rows` and `row_norms` have Meta kernels, `muladd` its derivative. When
the library cannot be built, `UNAVAILABLE` says why and nothing is registered.

The fakes refuse what the kernels refuse (``csrc/checks.h``), with the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from reference_ops.native._build import missing

#: As for ``OpSpec(unavailable=...)``: empty, or why the ops of ``reference_cpp`` are not there.
UNAVAILABLE = missing("native")

#: The same for ``reference_stable``.
STABLE_UNAVAILABLE = missing("stable")

_FLOATS = (torch.float32, torch.float64)

# --------------------------------------------------------------------------- refusals


def _check_float_or_double(op: str, name: str, t: Tensor) -> None:
    torch._check(t.dtype in _FLOATS, lambda: f"{op}: {name} must be float32 or float64, got {t.dtype}")


def _check_same(op: str, name: str, t: Tensor, like_name: str, like: Tensor) -> None:
    def message() -> str:
        return f"{op}: {name} must have the shape of {like_name}, {list(like.shape)}, got {list(t.shape)}"

    torch._check(t.dim() == like.dim(), message)
    # Size by size: a comparison of whole shapes is a question to Python, which a size that is only known at run time
    # cannot answer; torch._check turns the question into a check at run time.
    for size, like_size in zip(t.shape, like.shape, strict=True):
        torch._check(size == like_size, message)
    torch._check(t.dtype == like.dtype, lambda: f"{op}: {name} must have the dtype of {like_name}, {like.dtype}")
    torch._check(t.device == like.device, lambda: f"{op}: {name} must be on the device of {like_name}, {like.device}")


def _check_not_expanded(op: str, name: str, t: Tensor) -> None:
    for size, stride in zip(t.shape, t.stride(), strict=True):
        if isinstance(stride, int) and stride == 0:  # a stride that is symbolic is not zero
            torch._check(
                size <= 1,
                lambda: f"{op}: {name} must have memory of its own for every element, but is expanded; pass a clone",
            )


# --------------------------------------------------------------------------- fakes


def _muladd_fake(a: Tensor, b: Tensor, c: float) -> Tensor:
    _check_float_or_double("muladd", "a", a)
    _check_same("muladd", "b", b, "a", a)
    return a.new_empty(a.shape)


def _scale_fake(x: Tensor, s: float) -> None:
    torch._check(x.dtype.is_floating_point, lambda: f"scale_: x must have a floating-point dtype, got {x.dtype}")
    _check_not_expanded("scale_", "x", x)


def _plus_fake(a: Tensor, b: Tensor, op: str = "plus") -> Tensor:
    _check_float_or_double(op, "a", a)
    _check_same(op, "b", b, "a", a)
    return a.new_empty(a.shape)


def _plus_out_fake(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
    _plus_fake(a, b, op="plus.out")
    _check_same("plus.out", "out", out, "a", a)
    _check_not_expanded("plus.out", "out", out)
    return out


def _plus_into_fake(a: Tensor, b: Tensor, out: Tensor) -> None:
    _plus_fake(a, b, op="plus_into")
    _check_same("plus_into", "out", out, "a", a)
    _check_not_expanded("plus_into", "out", out)


def _weighted_sum_fake(xs: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    torch._check(len(xs) > 0, lambda: "weighted_sum: xs must hold at least one tensor, got an empty list")
    torch._check(
        len(xs) == len(weights),
        lambda: f"weighted_sum: weights must hold one number per tensor, {len(xs)}, got {len(weights)}",
    )
    _check_float_or_double("weighted_sum", "xs[0]", xs[0])
    for x in xs[1:]:
        _check_same("weighted_sum", "every tensor of xs", x, "xs[0]", xs[0])
    return xs[0].new_empty(xs[0].shape)


def _softclip_fake(x: Tensor, limit: float) -> Tensor:
    _check_float_or_double("softclip", "x", x)
    torch._check(limit > 0, lambda: f"softclip: limit must be positive, got {limit}")
    # Like the result of TensorIterator: dense inputs keep their strides, others get dense ones in the same order.
    return torch.empty_like(x)


def _running_max_fake(x: Tensor) -> Tensor:
    torch._check(
        x.dtype in (*_FLOATS, torch.int64),
        lambda: f"running_max: x must be float32, float64 or int64, got {x.dtype}",
    )
    torch._check(x.dim() >= 1, lambda: "running_max: x must have at least one dimension, got a 0-d tensor")
    return x.new_empty(x.shape)


def _axpy_fake(x: Tensor, y: Tensor, a: float) -> Tensor:
    _check_float_or_double("axpy", "x", x)
    _check_same("axpy", "y", y, "x", x)
    return x.new_empty(x.shape)


# --------------------------------------------------------------------------- derivatives
# Each is made of differentiable ops, so that second derivatives follow.


def _plus_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    return grad, grad


def _weighted_sum_setup(ctx: Any, inputs: tuple[list[Tensor], list[float]], output: Tensor) -> None:
    ctx.weights = inputs[1]


def _weighted_sum_backward(ctx: Any, grad: Tensor) -> tuple[list[Tensor], None]:
    return [grad * weight for weight in ctx.weights], None


def _tile_rows_setup(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
    ctx.height, ctx.rows = inputs[0].shape[0], inputs[1]


def _tile_rows_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    source = torch.arange(ctx.rows, device=grad.device) % ctx.height
    return grad.new_zeros((ctx.height, *grad.shape[1:])).index_add(0, source, grad), None


def _row_norms_setup(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _row_norms_backward(ctx: Any, grad: Tensor) -> Tensor:
    x, norms = ctx.saved_tensors
    # The norm of a row of zeros has a kink; 0 is in its subgradient, and is what torch.linalg.vector_norm returns.
    slope = torch.where(norms == 0, torch.zeros_like(norms), grad / torch.where(norms == 0, 1.0, norms))
    return x * slope.unsqueeze(-1)


def _softclip_setup(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.limit = inputs[1]


def _softclip_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    (x,) = ctx.saved_tensors
    return grad * (1 - torch.tanh(x / ctx.limit) ** 2), None


def _running_max_setup(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])


def _running_max_backward(ctx: Any, grad: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    # Computed again here, because an index is of no use to most callers of the op.
    source = torch.cummax(x.detach(), dim=-1).indices
    return torch.zeros_like(grad).scatter_add(-1, source, grad)


def _axpy_setup(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
    ctx.a = inputs[2]


def _axpy_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
    return grad * ctx.a, grad, None


# --------------------------------------------------------------------------- vmap
# Most ops do without: vmap calls them once for each element of the batch. It refuses to do that for ops that write into
# an argument or take a list of tensors, so these have rules.


def _batch_first(t: Tensor, dim: int | None, size: int) -> Tensor:
    return t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)


def _scale_vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, s: float) -> tuple[None, None]:
    torch.ops.reference_cpp.scale_(x, s)
    return None, None


def _plus_into_vmap(
    info: Any, in_dims: tuple[int | None, int | None, int | None], a: Tensor, b: Tensor, out: Tensor
) -> tuple[None, None]:
    if in_dims[2] is None:
        raise ValueError("plus_into: out is not batched, so the results of a batch have no place to go")
    a, b, out = (_batch_first(t, dim, info.batch_size) for t, dim in zip((a, b, out), in_dims, strict=True))
    torch.ops.reference_cpp.plus_into(a, b, out)
    return None, None


def _weighted_sum_vmap(
    info: Any, in_dims: tuple[list[int | None], Any], xs: list[Tensor], weights: list[float]
) -> tuple[Tensor, int]:
    batched = [_batch_first(x, dim, info.batch_size) for x, dim in zip(xs, in_dims[0], strict=True)]
    return torch.ops.reference_cpp.weighted_sum(batched, weights), 0


# --------------------------------------------------------------------------- registration

if not UNAVAILABLE:
    torch.library.register_fake("reference_cpp::muladd", _muladd_fake)
    torch.library.register_fake("reference_cpp::scale_", _scale_fake)
    torch.library.register_fake("reference_cpp::plus", _plus_fake)
    torch.library.register_fake("reference_cpp::plus.out", _plus_out_fake)
    torch.library.register_fake("reference_cpp::plus_into", _plus_into_fake)
    torch.library.register_fake("reference_cpp::weighted_sum", _weighted_sum_fake)
    torch.library.register_fake("reference_cpp::softclip", _softclip_fake)
    torch.library.register_fake("reference_cpp::running_max", _running_max_fake)

    torch.library.register_autograd("reference_cpp::plus", _plus_backward)
    torch.library.register_autograd(
        "reference_cpp::weighted_sum", _weighted_sum_backward, setup_context=_weighted_sum_setup
    )
    torch.library.register_autograd("reference_cpp::tile_rows", _tile_rows_backward, setup_context=_tile_rows_setup)
    torch.library.register_autograd("reference_cpp::row_norms", _row_norms_backward, setup_context=_row_norms_setup)
    torch.library.register_autograd("reference_cpp::softclip", _softclip_backward, setup_context=_softclip_setup)
    torch.library.register_autograd(
        "reference_cpp::running_max", _running_max_backward, setup_context=_running_max_setup
    )

    torch.library.register_vmap("reference_cpp::scale_", _scale_vmap)
    torch.library.register_vmap("reference_cpp::plus_into", _plus_into_vmap)
    torch.library.register_vmap("reference_cpp::weighted_sum", _weighted_sum_vmap)

if not STABLE_UNAVAILABLE:
    torch.library.register_fake("reference_stable::axpy", _axpy_fake)
    torch.library.register_autograd("reference_stable::axpy", _axpy_backward, setup_context=_axpy_setup)
