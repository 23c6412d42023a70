"""Ops without a fault that do what looks like one: habits of libraries, each of which a check once took for a fault."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.broken.fault import define, doubled, library, like, matrix
from reference_ops.python.data import normal
from reference_ops.python.precision import widened

_LIBRARY = library("broken_habits")


# -- integers that must agree with sizes


def inverse(order: Tensor) -> Tensor:
    """Where each row went. What is no order of all rows leaves elements unwritten, as kernels do that check nothing."""
    out = torch.empty_like(order, memory_format=torch.contiguous_format)
    out[order.clamp(0, max(len(order) - 1, 0))] = torch.arange(len(order), dtype=order.dtype, device=order.device)
    return out


def bag_sums(values: Tensor, offsets: Tensor) -> Tensor:
    """Sums of the rows of each bag. A bag that ends before it begins is not written."""
    out = values.new_empty(_bags(values, offsets).shape)
    bounds = offsets.tolist()
    for n, (start, end) in enumerate(itertools.pairwise(bounds)):
        if 0 <= start <= end <= len(values):
            out[n] = values[start:end].sum(0)
    return out


def _bags(values: Tensor, offsets: Tensor) -> Tensor:
    torch._check(values.dim() == 2 and offsets.dim() == 1 and offsets.shape[0] > 0)
    return values.new_empty((offsets.shape[0] - 1, values.shape[1]))


def spread(lengths: Tensor, rows: Tensor) -> Tensor:
    """The number of the bag that each row is in. Rows beyond the last bag are not written."""
    out = rows.new_empty(rows.shape[:1], dtype=torch.int64)
    bags = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)[: len(rows)]
    out[: len(bags)] = bags
    return out


def _spread(lengths: Tensor, rows: Tensor) -> Tensor:
    torch._check(lengths.dim() == 1 and rows.dim() > 0)
    return rows.new_empty(rows.shape[:1], dtype=torch.int64)


_INVERSE = define(_LIBRARY, "inverse", "(Tensor order) -> Tensor", inverse, like)
_BAG_SUMS = define(_LIBRARY, "bag_sums", "(Tensor values, Tensor offsets) -> Tensor", bag_sums, _bags)
_SPREAD = define(_LIBRARY, "spread", "(Tensor lengths, Tensor rows) -> Tensor", spread, _spread)


def _order(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((torch.tensor([2, 0, 1, 3], device=device),), name="order")


def _rows_and_offsets(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    rows = normal(6, 4, device=device, dtype=dtype)
    yield Sample((rows, torch.tensor([0, 2, 2, 6], device=device)), name="bags, as many offsets as columns")


def _lengths_and_rows(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((torch.tensor([2, 0, 3], device=device), normal(5, 4, device=device, dtype=dtype)), name="lengths")


# -- where outputs are


@torch.library.custom_op("broken_habits::sizes_on_host", mutates_args=())
def sizes_on_host(x: Tensor) -> Tensor:
    """The number of positive elements in each row, for the host to plan with."""
    return (x > 0).sum(-1).cpu()


@sizes_on_host.register_fake
def _(x: Tensor) -> Tensor:
    torch._check(x.dim() > 0)
    return x.new_empty(x.shape[:-1], dtype=torch.int64, device="cpu")


@torch.library.custom_op("broken_habits::for_cpus", mutates_args=(), device_types="cpu")
def for_cpus(x: Tensor) -> Tensor:
    """There is no kernel for CUDA, and the fake kernel refuses it."""
    return doubled(x)


@for_cpus.register_fake
def _(x: Tensor) -> Tensor:
    torch._check(x.device.type == "cpu", lambda: "expected a tensor on the CPU")
    return like(x)


# -- what stands between a call and the kernel


def steps(x: Tensor) -> Tensor:
    """Differentiable by a kernel at Autograd that calls another op of the library."""
    return doubled(x)


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return torch.ops.broken_habits.steps_forward(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


_STEPS = define(_LIBRARY, "steps", "(Tensor x) -> Tensor", steps, like)
define(_LIBRARY, "steps_forward", "(Tensor x) -> Tensor", doubled, like)
_LIBRARY.impl("steps", lambda x: _Steps.apply(x), "Autograd")


def joined(xs: list[Tensor]) -> Tensor:
    """Transparent, with a list of tensors, over which vmap cannot loop."""
    return torch.cat([x * 2 for x in xs])


def scale_of(x: Tensor) -> Tensor:
    """Computed in the dtype of x, and returned in float64. A compiler may keep the quotient in float32."""
    return (x.abs().amax() / 127).double()


_JOINED = define(_LIBRARY, "joined", "(Tensor[] xs) -> Tensor", joined, None, key="CompositeImplicitAutograd")
_SCALE_OF = define(_LIBRARY, "scale_of", "(Tensor x) -> Tensor", scale_of, None, key="CompositeImplicitAutograd")


def _two_in_a_list(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    xs = [normal(3, 4, device=device, dtype=dtype), normal(2, 4, device=device, dtype=dtype, seed=1)]
    yield Sample((xs,), name="two matrices")


def _half(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=torch.float16),), name="half precision")


# -- sizes that are arguments


def pooled(xs: list[Tensor], rows: int) -> Tensor:
    """Matrices side by side; the number of their rows is an argument as well."""
    return torch.cat(xs, dim=1)


def _pooled(xs: list[Tensor], rows: int) -> Tensor:
    for x in xs:
        torch._check(x.dim() == 2 and x.shape[0] == rows)
    return xs[0].new_empty((rows, sum(x.shape[1] for x in xs)))


def _checked(xs: list[Tensor], rows: int) -> Tensor:
    return _pooled(xs, rows).copy_(pooled(xs, rows))


_POOLED = define(_LIBRARY, "pooled", "(Tensor[] xs, SymInt rows) -> Tensor", _checked, _pooled)


def _pair_and_rows(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    xs = [normal(3, 4, device=device, dtype=dtype), normal(3, 5, device=device, dtype=dtype, seed=1)]
    yield Sample((xs, 3), name="two matrices of three rows")


# -- precision, dtypes and gradients


@torch.library.custom_op("broken_habits::long_sums", mutates_args=())
def long_sums(x: Tensor) -> Tensor:
    """Sums of rows, one element after the other, in float32: as good as such sums are."""
    total = widened(x.new_zeros(x.shape[:-1]))
    for n in range(x.shape[-1]):
        total += x[..., n]
    return total.to(x.dtype, copy=True)


@long_sums.register_fake
def _(x: Tensor) -> Tensor:
    torch._check(x.dim() > 0)
    return x.new_empty(x.shape[:-1])


@torch.library.custom_op("broken_habits::single_only", mutates_args=())
def single_only(x: Tensor) -> Tensor:
    """The kernel has no instance for other dtypes; a kernel for another device may."""
    if x.dtype != torch.float32:
        raise NotImplementedError(f'"single_only" not implemented for {str(x.dtype)!r}')
    return doubled(x)


single_only.register_fake(like)


@torch.library.custom_op("broken_habits::clipped", mutates_args=())
def clipped(x: Tensor) -> Tensor:
    """max(x, 0), with zeros in the sample, where there is no derivative."""
    return like(x).copy_(x.clamp(min=0))


def _keep(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


clipped.register_fake(like)
clipped.register_autograd(lambda ctx, grad: grad * (ctx.saved_tensors[0] > 0), setup_context=_keep)


@torch.library.custom_op("broken_habits::inference_only", mutates_args=())
def inference_only(x: Tensor) -> Tensor:
    """The formula says that there is no gradient."""
    return doubled(x)


@inference_only.register_autograd
def _refuse(ctx: Any, grad: Tensor) -> Tensor:
    raise NotImplementedError("inference_only has no gradient")


inference_only.register_fake(like)


@torch.library.custom_op("broken_habits::norms", mutates_args=())
def norms(points: Tensor, degree: int) -> tuple[Tensor, Tensor]:
    """Norms of points in space to some degree, and the norms. What follows the first three coordinates is not read."""
    length = points[:, :3].norm(dim=1)
    return length**degree, length


@norms.register_fake
def _(points: Tensor, degree: int) -> tuple[Tensor, Tensor]:
    return points.new_empty(points.shape[0]), points.new_empty(points.shape[0])


def _keep_points(ctx: Any, inputs: tuple[Tensor, int], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.degree = inputs[1]


def _slope(ctx: Any, high: Tensor, low: Tensor) -> tuple[Tensor, None]:
    points = ctx.saved_tensors[0][:, :3]
    length = points.norm(dim=1)
    total = high * ctx.degree * length ** (ctx.degree - 1) + low
    return (total / length).unsqueeze(1) * points, None


norms.register_autograd(_slope, setup_context=_keep_points)


@torch.library.custom_op("broken_habits::affine", mutates_args=())
def affine(x: Tensor, weight: Tensor, bias: Tensor | None, has_bias: bool) -> Tensor:
    """x (n, k) times weight (k), plus bias (k) where there is one. The kernel broadcasts whatever it is given."""
    return (x * weight if bias is None else x * weight + bias).contiguous()


@affine.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None, has_bias: bool) -> Tensor:
    torch._check(x.shape[-1:] == weight.shape and (bias is None or bias.shape == weight.shape))
    return x.new_empty(x.shape, dtype=torch.promote_types(x.dtype, weight.dtype))


def _keep_flag(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None, bool], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.has_bias = inputs[3]


def _affine_slope(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
    x, weight = ctx.saved_tensors
    rest = tuple(range(x.dim() - 1))
    columns = grad.sum(rest) if rest else grad
    return grad * weight, (grad * x).sum(rest) if rest else grad * x, columns if ctx.has_bias else None, None


affine.register_autograd(_affine_slope, setup_context=_keep_flag)


def _with_and_without_bias(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x, weight, bias = (normal(*shape, device=device, dtype=dtype) for shape in ((3, 4), (4,), (4,)))
    yield Sample((x, weight, bias, True), name="a bias")
    yield Sample((x, weight, None, False), name="no bias")


def _points(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(5, 3, device=device, dtype=dtype), 3), name="points and a degree")


def _long_rows(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 2000, device=device, dtype=dtype),), name="long rows")


def _with_zeros(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype).round(),), name="rounded, with zeros")


SPECS = [
    OpSpec(_INVERSE, samples=_order, about="an order of rows"),
    OpSpec(_BAG_SUMS, samples=_rows_and_offsets, about="offsets that end at the number of rows"),
    OpSpec(_SPREAD, samples=_lengths_and_rows, about="counts that add up to the number of rows"),
    OpSpec(sizes_on_host, samples=matrix, about="an output on the CPU on purpose"),
    OpSpec(for_cpus, samples=matrix, about="an op for the CPU alone"),
    OpSpec(_STEPS, samples=matrix, about="a kernel at Autograd that calls another op of the library"),
    OpSpec(_JOINED, samples=_two_in_a_list, opaque=False, about="a list of tensors under vmap"),
    OpSpec(_SCALE_OF, samples=_half, opaque=False, about="float64 out of half precision"),
    OpSpec(_POOLED, samples=_pair_and_rows, about="a size that is an argument, too"),
    OpSpec(
        long_sums, samples=_long_rows, reference=lambda x: x.double().sum(-1).to(x.dtype), about="sums of many terms"
    ),
    OpSpec(single_only, samples=matrix, about="a dtype that the kernel has no instance for"),
    OpSpec(clipped, samples=_with_zeros, reference=torch.relu, about="a sample at which there is no derivative"),
    OpSpec(norms, samples=_points, about="a number that happens to equal a size, which only backward holds fast"),
    OpSpec(
        affine,
        samples=_with_and_without_bias,
        differentiable=True,
        about="a flag that says whether an argument is there, and a fake kernel stricter than the op",
    ),
    OpSpec(inference_only, samples=matrix, about="a formula that refuses"),
]
