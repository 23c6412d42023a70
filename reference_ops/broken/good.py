"""Ops without a fault: for every check one that passes it, having run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from opcheck_suite import registry
from opcheck_suite.model import OpSpec, Sample
from reference_ops.broken.fault import define, doubled, library, like, matrix, matrix_and_number, two_matrices


def _plain_blend(a: Tensor, b: Tensor, factor: float) -> Tensor:
    """What `blend` wraps. The read of a number from data is what torch.compile cannot trace."""
    return a * b + factor if float(a.abs().sum()) >= 0 else a


@torch.library.custom_op("broken_good::blend", mutates_args=())
def blend(a: Tensor, b: Tensor, factor: float) -> Tensor:
    """The product of a and b, plus factor."""
    return like(a).copy_(a * b + factor)


@blend.register_fake
def _(a: Tensor, b: Tensor, factor: float) -> Tensor:
    return like(a)


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
    a, b = ctx.saved_tensors
    return grad * b, grad * a, None


blend.register_autograd(_gradient, setup_context=_keep)


def _scale(x: Tensor, factor: float) -> None:
    x.mul_(factor)


def _scaled(x: Tensor, factor: float) -> None:
    x.copy_(x * factor)


def _nothing(x: Tensor, factor: float) -> None:
    return None


_LIBRARY = library("broken_good")
_DOUBLED = define(_LIBRARY, "doubled", "(Tensor x) -> Tensor", doubled, like)
_SCALE = define(_LIBRARY, "scale", "(Tensor(a!) x, float factor) -> ()", _scale, _nothing)


def _two_matrices_and_number(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in two_matrices(device, dtype):
        yield Sample((*sample.args, 0.5), name="two matrices and a number")


BLEND = OpSpec(
    blend,
    samples=_two_matrices_and_number,
    reference=_plain_blend,
    unwrapped=_plain_blend,
    differentiable=True,
    opaque=True,
    about="a differentiable op that wraps what cannot be traced",
)
SCALE = OpSpec(_SCALE, samples=matrix_and_number, reference=_scaled, about="an op that writes to its argument")
DOUBLED = OpSpec(_DOUBLED, samples=matrix, reference=doubled, about="an op that is defined in a library")

SPECS = [BLEND, SCALE, DOUBLED]

#: Check id -> an op that passes it. Only ops that write to an argument can pass the two checks of such writes.
GOOD: dict[str, OpSpec] = {
    one.id: SCALE if one.id in ("schema.overdeclared", "schema.version") else BLEND for one in registry.all_checks()
}
