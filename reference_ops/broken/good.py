"""Ops without a fault: for every check one that passes it, having run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from opcheck_suite import registry
from opcheck_suite.model import OpSpec, Sample
from reference_ops.broken.fault import (
    COMPILER,
    complex_matrix,
    define,
    doubled,
    images,
    library,
    like,
    matrix,
    matrix_and_number,
    two_matrices,
    two_vectors,
)
from reference_ops.python.data import normal


def _plain_blend(a: Tensor, b: Tensor, factor: float) -> Tensor:
    """What `blend` wraps. The read of a number from data is what torch.compile cannot trace."""
    return a if float(a.abs().sum()) < 0 else a * b + factor


@torch.library.custom_op("broken_good::blend", mutates_args=())
def blend(a: Tensor, b: Tensor, factor: float) -> Tensor:
    """The product of a and b, plus factor."""
    return like(a).copy_(a * b + factor)


@blend.register_fake
def _(a: Tensor, b: Tensor, factor: float) -> Tensor:
    return like(a)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*(value for value in inputs if isinstance(value, Tensor)))


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


def _pick(x: Tensor, index: Tensor, power: int, order: str = "given") -> Tensor:
    rows = x[index] ** power
    return _picked(x, index, power).copy_(rows.flip(0) if order == "reversed" else rows)


def _picked(x: Tensor, index: Tensor, power: int, order: str = "given") -> Tensor:
    torch._check(x.dim() > 0)
    return x.new_empty((*index.shape, *x.shape[1:]))


def _plain_pick(x: Tensor, index: Tensor, power: int, order: str = "given") -> Tensor:
    rows = torch.stack([x[i] for i in index.tolist()]) ** power if len(index) else x[:0]
    return rows.flip(0) if order == "reversed" else rows


@torch.library.custom_op("broken_good::positives", mutates_args=())
def positives(x: Tensor) -> tuple[Tensor, int]:
    """The positive elements, and how many rows there were."""
    return x[x > 0], len(x)


@positives.register_fake
def _(x: Tensor) -> tuple[Tensor, int]:
    torch._check(x.dim() > 0)
    return x.new_empty(torch.library.get_ctx().new_dynamic_size()), x.shape[0]


@torch.library.custom_op("broken_good::turned", mutates_args=())
def turned(x: Tensor) -> Tensor:
    """The elements of each row from the last to the first."""
    return like(x).copy_(x.flip(-1) if x.dim() else x)


turned.register_fake(like)


@turned.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: Tensor) -> tuple[Tensor, int]:
    torch._check(x.dim() > 1)
    return turned(x.movedim(in_dims[0] or 0, 0)), 0


@torch.library.custom_op("broken_good::ordered", mutates_args=())
def ordered(x: Tensor) -> Tensor:
    """Twice x in the order that x has in memory, so that images in channels-last order stay so."""
    return torch.empty_like(x).copy_(x * 2)


ordered.register_fake(torch.empty_like)
ordered.register_autograd(lambda _ctx, grad: grad * 2)


class _Tables:
    """Numbers that an op makes when it first needs them, and how it makes tensors of them."""

    numbers = np.array([2.0])
    like = torch.empty(0, dtype=torch.float64)
    factor: Tensor | None = None
    by_device: ClassVar[dict[torch.device, Tensor]] = {}

    @classmethod
    def fill(cls) -> None:
        cls.factor = torch.from_numpy(cls.numbers).to(cls.like.dtype)


@torch.library.custom_op("broken_good::doubled_by_table", mutates_args=())
def doubled_by_table(x: Tensor) -> Tensor:
    """Twice x, by a number from a table for its device."""
    if _Tables.factor is None:
        _Tables.fill()
    assert _Tables.factor is not None
    if x.device not in _Tables.by_device:
        _Tables.by_device[x.device] = _Tables.factor.to(x.device)
    return like(x).copy_(x * _Tables.by_device[x.device].to(x.dtype))


doubled_by_table.register_fake(like)


def _squared(x: Tensor) -> Tensor:
    return like(x).copy_(x.resolve_conj().resolve_neg() ** 2)


def _square_gradient(ctx: Any, grad: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    return grad * 2 * x.conj()


class _Quadratic(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.broken_good.quadratic(x)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2 * ctx.saved_tensors[0].conj()

    @staticmethod
    def jvp(ctx: Any, direction: Tensor) -> Tensor:
        return direction * 2 * ctx.saved_tensors[0]


def _quadratic(x: Tensor) -> Tensor:
    return like(x).copy_(x * x)


def _outer(a: Tensor, b: Tensor) -> Tensor:
    torch._check(a.dim() == 1 and b.dim() == 1)
    return a.new_empty((a.shape[0], b.shape[0]), dtype=torch.result_type(a, b))


def _product(x: Tensor, weight: Tensor, factor: float = 1.0) -> Tensor:
    torch._check(x.dim() == 2 and weight.dim() == 2)
    torch._check(x.shape[1] == weight.shape[1])
    torch._check(x.dtype == weight.dtype)
    return x.new_empty((x.shape[0], weight.shape[0]))


_LIBRARY = library("broken_good")
_OUTER = define(_LIBRARY, "outer", "(Tensor a, Tensor b) -> Tensor", torch.outer, _outer)
_DOUBLED = define(_LIBRARY, "doubled", "(Tensor x) -> Tensor", doubled, like)
_PICK = define(_LIBRARY, "pick", "(Tensor x, Tensor index, int power, str order='given') -> Tensor", _pick, _picked)
_SQUARED = define(_LIBRARY, "squared", "(Tensor x) -> Tensor", _squared, like)
for _key in ("Conjugate", "Negative"):
    _LIBRARY.impl("squared", torch.library.fallthrough_kernel, _key)
torch.library.register_autograd(_SQUARED, _square_gradient, setup_context=_keep, lib=_LIBRARY)
_QUADRATIC = define(_LIBRARY, "quadratic", "(Tensor x) -> Tensor", _quadratic, like)
_LIBRARY.impl("quadratic", lambda x: _Quadratic.apply(x), "AutogradCPU")
_SCALE = define(_LIBRARY, "scale", "(Tensor(a!) x, float factor) -> ()", _scale, _nothing)


@torch.library.register_vmap(_SCALE, lib=_LIBRARY)
def _(info: Any, dims: tuple[int | None, ...], x: Tensor, factor: float) -> tuple[None, None]:
    """Every element is scaled alike, wherever the batch dimension is."""
    torch.ops.broken_good.scale(x, factor)
    return None, None


_PRODUCT = define(
    _LIBRARY,
    "product",
    "(Tensor x, Tensor weight, float factor=1.0) -> Tensor",
    lambda x, weight, factor=1.0: _product(x, weight, factor).copy_(x @ weight.t() * factor),
    lambda x, weight, factor=1.0: _product(x, weight, factor),
)


@torch.library.impl(_LIBRARY, "product", "AutocastCPU")
def _(x: Tensor, weight: Tensor, factor: float = 1.0) -> Tensor:
    """Whatever has come out of the region so far, both are multiplied in its dtype."""
    low = torch.get_autocast_dtype("cpu")
    with torch.autocast("cpu", enabled=False):
        return torch.ops.broken_good.product(x.to(low), weight.to(low), factor)  # type: ignore[no-any-return]


def _two_matrices_and_number(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in two_matrices(device, dtype):
        yield Sample((*sample.args, 0.5), name="two matrices and a number")


def _matrix_and_index(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in matrix(device, dtype):
        index = torch.tensor([2, 0, 0, 1], device=device)
        yield Sample((*sample.args, index, 2, "reversed"), name="matrix and index")


def _images_and_volumes(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield from images(device, dtype)
    yield Sample((normal(2, 3, 4, 5, 2, device=device, dtype=dtype),), name="volumes")


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

PICK = OpSpec(
    _PICK, samples=_matrix_and_index, reference=_plain_pick, about="positions, a number and a word as arguments"
)
POSITIVES = OpSpec(
    positives,
    samples=matrix,
    reference=lambda x: (x.masked_select(x > 0), x.shape[0]),
    about="data decides a size, and sizes decide a number",
)
TURNED = OpSpec(turned, samples=matrix, reference=lambda x: x.flip(-1) if x.dim() else x, about="a batching rule")
OUTER = OpSpec(
    _OUTER, samples=two_vectors, reference=torch.outer, unavailable=COMPILER, about="a kernel in C++, which is torch's"
)

QUADRATIC = OpSpec(
    _QUADRATIC,
    samples=matrix,
    reference=torch.square,
    differentiable=True,
    about="derivatives in both modes, registered for the one device that there is a kernel for",
)

PRODUCT = OpSpec(_PRODUCT, samples=_two_matrices_and_number, about="an autocast rule")
ORDERED = OpSpec(ordered, samples=_images_and_volumes, reference=lambda x: x * 2, about="images and volumes")
SQUARED = OpSpec(_SQUARED, samples=complex_matrix, reference=torch.square, about="complex numbers, and conj views")

BY_TABLE = OpSpec(doubled_by_table, samples=matrix, reference=doubled, about="tables that fill when they are used")

SPECS = [BY_TABLE, BLEND, SCALE, DOUBLED, PICK, POSITIVES, TURNED, ORDERED, SQUARED, QUADRATIC, OUTER, PRODUCT]

#: Ops that pass what does not apply to `BLEND`.
_OTHERS = (
    (SCALE, ("schema.overdeclared", "schema.version", "compile.effects")),
    (
        PICK,
        (
            "registration.kernel_signature",
            "registration.number_as_string",
            "registration.symint",
            "values.refusals",
            "values.wide",
        ),
    ),
    (POSITIVES, ("fake.bounds", "fake.scalars")),
    (TURNED, ("transform.vmap",)),
    (ORDERED, ("values.noncontiguous", "fake.strides", "autograd.incoming")),
    (SQUARED, ("autograd.gradcheck", "fake.lazy_bits")),
    (QUADRATIC, ("autograd.forward_mode", "dispatch.keys")),
    (OUTER, ("export.aotinductor",)),
    (PRODUCT, ("dispatch.autocast_rule",)),
    (BY_TABLE, ("registration.hidden_input",)),
)

#: Check id -> an op that passes it, having run.
GOOD: dict[str, OpSpec] = {one.id: BLEND for one in registry.all_checks()} | {
    check: spec for spec, checks in _OTHERS for check in checks
}
