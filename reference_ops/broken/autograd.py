"""Ops with wrong gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, doubled, like, planted, two_matrices


@torch.library.custom_op("broken_autograd::forgets_factor", mutates_args=())
def forgets_factor(x: Tensor) -> Tensor:
    """The gradient of x * x is given as x."""
    return like(x).copy_(x * x)


def _save(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


forgets_factor.register_fake(like)
forgets_factor.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0], setup_context=_save)


@torch.library.custom_op("broken_autograd::gradient_raises", mutates_args=())
def gradient_raises(x: Tensor) -> Tensor:
    """The formula raises."""
    return doubled(x)


@gradient_raises.register_autograd
def _raise(ctx: Any, grad: Tensor) -> Tensor:
    raise NotImplementedError("no gradient yet")


gradient_raises.register_fake(like)


@torch.library.custom_op("broken_autograd::no_gradient", mutates_args=())
def no_gradient(x: Tensor) -> Tensor:
    """The formula gives no gradient, which counts as zero."""
    return doubled(x)


@no_gradient.register_autograd
def _none(ctx: Any, grad: Tensor) -> None:
    return None


no_gradient.register_fake(like)


@torch.library.custom_op("broken_autograd::swapped", mutates_args=())
def swapped(a: Tensor, b: Tensor) -> Tensor:
    """The gradients of the two arguments of a - b are swapped."""
    return like(a).copy_(a - b)


@swapped.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    torch._check(a.dim() == b.dim())
    return like(a)


@swapped.register_autograd
def _swapped(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    return -grad, grad


FAULTS: list[Fault] = [
    planted(forgets_factor, "autograd.gradcheck", reference=torch.square),
    # torch's AOT utils run backward
    planted(gradient_raises, "autograd.gradcheck", also={"opcheck.utils": "fail"}, reference=doubled),
    planted(no_gradient, "autograd.gradcheck", reference=doubled),
    planted(swapped, "autograd.gradcheck", samples=two_matrices, reference=torch.sub),
]
