"""Ops registered step by step, through ``torch.library.define`` and ``torch.library.Library``.

They have overloads, a kernel for each of several dispatch keys, and a transparent op beside an opaque one: things
``torch.library.custom_op`` does not offer.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.types import Number

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python import conditions
from reference_ops.python.conditions import COMPLEX, FLOATS, INTEGERS
from reference_ops.python.data import normal
from reference_ops.python.precision import double, widened

#: Registrations end when the Library is collected, so it lives as long as the module.
LIBRARY = torch.library.Library("reference", "FRAGMENT")

_TAGS = (torch.Tag.pt2_compliant_tag,)


def _soft_limit_result(x: Tensor, bound: float) -> Tensor:
    conditions.dtype_among("soft_limit", "x", x, FLOATS)
    torch._check(bound > 0, lambda: f"soft_limit: expected a positive bound, got {bound}")
    return x.new_empty(x.shape)


torch.library.define("reference::soft_limit", "(Tensor x, float bound) -> Tensor", tags=_TAGS)


@torch.library.impl("reference::soft_limit", "default")
def soft_limit(x: Tensor, bound: float) -> Tensor:
    """bound * tanh(x / bound), by one kernel for every device."""
    return _soft_limit_result(x, bound).copy_(bound * torch.tanh(widened(x) / bound))


torch.library.register_fake("reference::soft_limit", _soft_limit_result)


def _soft_limit_save(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    x, ctx.bound = inputs
    ctx.save_for_backward(x)


def _soft_limit_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None]:
    (x,) = ctx.saved_tensors
    # From x and not from the saved output, so that a second derivative flows through it too.
    return grad * (1 - torch.tanh(x / ctx.bound) ** 2) if ctx.needs_input_grad[0] else None, None


torch.library.register_autograd("reference::soft_limit", _soft_limit_gradient, setup_context=_soft_limit_save)


LIBRARY.define("shift.Scalar(Tensor x, Scalar by) -> Tensor", tags=_TAGS)
LIBRARY.define("shift.Tensor(Tensor x, Tensor by) -> Tensor", tags=_TAGS)


def _shift_scalar_result(x: Tensor, by: Number) -> Tensor:
    conditions.dtype_among("shift", "x", x, FLOATS + COMPLEX + INTEGERS)
    return x.new_empty(x.shape, dtype=torch.result_type(x, by))


def shift_scalar(x: Tensor, by: Number) -> Tensor:
    """x + by for a number."""
    return _shift_scalar_result(x, by).copy_(x + by)


def _shift_tensor_result(x: Tensor, by: Tensor) -> Tensor:
    conditions.dtype_among("shift", "x", x, FLOATS + COMPLEX + INTEGERS)
    conditions.alike("shift", "x", x, "by", by)
    return x.new_empty(x.shape)


def shift_tensor(x: Tensor, by: Tensor) -> Tensor:
    """x + by for a tensor of the same shape."""
    return _shift_tensor_result(x, by).copy_(x + by)


# By backend and not for all at once, as a library with a kernel a device does it.
for _key in ("CPU", "CUDA"):
    LIBRARY.impl("shift.Scalar", shift_scalar, _key)
    LIBRARY.impl("shift.Tensor", shift_tensor, _key)
torch.library.register_fake("reference::shift.Scalar", _shift_scalar_result, lib=LIBRARY)
torch.library.register_fake("reference::shift.Tensor", _shift_tensor_result, lib=LIBRARY)


def _shift_scalar_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None]:
    return grad.clone() if ctx.needs_input_grad[0] else None, None


def _shift_tensor_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    # Two inputs must not get one and the same gradient tensor.
    wants_x, wants_by = ctx.needs_input_grad
    return grad.clone() if wants_x else None, grad.clone() if wants_by else None


torch.library.register_autograd("reference::shift.Scalar", _shift_scalar_gradient, lib=LIBRARY)
torch.library.register_autograd("reference::shift.Tensor", _shift_tensor_gradient, lib=LIBRARY)


LIBRARY.define("gated(Tensor x, Tensor y) -> Tensor", tags=_TAGS)
LIBRARY.define("gated_opaque(Tensor x, Tensor y) -> Tensor", tags=_TAGS)


def gated(x: Tensor, y: Tensor) -> Tensor:
    """x * sigmoid(y), in torch operations that compilers see and fuse, and autograd differentiates by itself."""
    conditions.dtype_among("gated", "x", x, FLOATS)
    conditions.alike("gated", "x", x, "y", y)
    return x * torch.sigmoid(y)


LIBRARY.impl("gated", gated, "CompositeImplicitAutograd")


def _gated_opaque_result(x: Tensor, y: Tensor) -> Tensor:
    conditions.dtype_among("gated_opaque", "x", x, FLOATS)
    conditions.alike("gated_opaque", "x", x, "y", y)
    return x.new_empty(x.shape)


def gated_opaque(x: Tensor, y: Tensor) -> Tensor:
    """The same, as a kernel nobody looks into; so it needs a fake and a gradient of its own."""
    return _gated_opaque_result(x, y).copy_(widened(x) * torch.sigmoid(widened(y)))


LIBRARY.impl("gated_opaque", gated_opaque, "CompositeExplicitAutograd")
torch.library.register_fake("reference::gated_opaque", _gated_opaque_result, lib=LIBRARY)


def _gated_save(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gated_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = ctx.saved_tensors
    share = torch.sigmoid(y)
    return (
        grad * share if ctx.needs_input_grad[0] else None,
        grad * x * share * (1 - share) if ctx.needs_input_grad[1] else None,
    )


torch.library.register_autograd("reference::gated_opaque", _gated_gradient, setup_context=_gated_save, lib=LIBRARY)


def _matrix(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(4, 3, device=device, dtype=dtype), 1.5), name="matrix")


def _two_matrices(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample(tuple(normal(3, 5, device=device, dtype=dtype, seed=seed) for seed in range(2)), name="matrices")


SPECS = [
    OpSpec(
        "reference::soft_limit",
        _matrix,
        reference=lambda x, bound: (double(x) / bound).tanh().mul(bound).to(x.dtype),
        about="defined and implemented by name, one kernel for every device",
    ),
    OpSpec(
        "reference::shift.Scalar",
        _matrix,
        reference=torch.add,
        about="one overload of two, with a number",
    ),
    OpSpec(
        "reference::shift.Tensor",
        _two_matrices,
        reference=torch.add,
        about="the other overload, with a tensor",
    ),
    OpSpec(
        "reference::gated",
        _two_matrices,
        reference=lambda x, y: y.sigmoid().mul(x),
        opaque=False,
        about="transparent on purpose: compilers see the torch operations inside",
    ),
    OpSpec(
        "reference::gated_opaque",
        _two_matrices,
        reference=lambda x, y: (double(x) / (1 + torch.exp(-double(y)))).to(x.dtype),
        about="the same formula as an opaque kernel",
    ),
]
