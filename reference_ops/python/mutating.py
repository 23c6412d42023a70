"""Ops that write to their arguments, and say so in ``mutates_args``.

They refuse expanded arguments, as torch's own in-place ops do: one place in memory cannot hold several results.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python import conditions
from reference_ops.python.conditions import COMPLEX, FLOATS, INTEGERS
from reference_ops.python.data import normal
from reference_ops.python.precision import double, widened


def _accumulate_conditions(total: Tensor, value: Tensor) -> None:
    conditions.dtype_among("accumulate_", "total", total, FLOATS + COMPLEX + INTEGERS)
    conditions.alike("accumulate_", "total", total, "value", value)
    conditions.writable("accumulate_", "total", total)


@torch.library.custom_op("reference::accumulate_", mutates_args=("total",))
def accumulate_(total: Tensor, value: Tensor) -> None:
    """Add value to total, in place."""
    _accumulate_conditions(total, value)
    total.add_(value)


accumulate_.register_fake(_accumulate_conditions)


def _accumulate_aten(total: Tensor, value: Tensor) -> None:
    total.copy_(total + value)


def _difference_into_conditions(x: Tensor, y: Tensor, out: Tensor) -> None:
    conditions.dtype_among("difference_into", "x", x, FLOATS + COMPLEX)
    conditions.alike("difference_into", "x", x, "y", y)
    conditions.alike("difference_into", "x", x, "out", out)
    conditions.writable("difference_into", "out", out)


@torch.library.custom_op("reference::difference_into", mutates_args=("out",))
def difference_into(x: Tensor, y: Tensor, out: Tensor) -> None:
    """Write x - y to out, whose old content does not matter and whose shape must be right."""
    _difference_into_conditions(x, y, out)
    out.copy_(x - y)


difference_into.register_fake(_difference_into_conditions)


def _difference_into_aten(x: Tensor, y: Tensor, out: Tensor) -> None:
    torch.sub(x, y, out=out)


def _centre_columns_result(x: Tensor, seen: Tensor, running_mean: Tensor | None, momentum: float = 0.1) -> Tensor:
    op = "centre_columns"
    conditions.dims(op, "x", x, 2)
    conditions.dtype_among(op, "x", x, FLOATS)
    torch._check(x.shape[0] > 0, lambda: f"{op}: expected x of at least one row, got none")
    conditions.dims(op, "seen", seen, 0)
    conditions.dtype_among(op, "seen", seen, (torch.int64,))
    conditions.same_device(op, "x", x, "seen", seen)
    if running_mean is not None:
        conditions.dims(op, "running_mean", running_mean, 1)
        conditions.same_kind(op, "x", x, "running_mean", running_mean)
        conditions.same_size(op, "the columns of x and the length of running_mean", x.shape[1], running_mean.shape[0])
        conditions.writable(op, "running_mean", running_mean)
    return x.new_empty(x.shape)


@torch.library.custom_op("reference::centre_columns", mutates_args=("seen", "running_mean"))
def centre_columns(x: Tensor, seen: Tensor, running_mean: Tensor | None, momentum: float = 0.1) -> Tensor:
    """x (rows, columns) minus the mean of its columns.

    The number of rows is added to seen (0-d, int64), and running_mean (columns), if given, moves towards the mean.
    """
    result = _centre_columns_result(x, seen, running_mean, momentum)
    wide = widened(x)
    mean = wide.mean(0)
    result.copy_(wide - mean)
    seen.add_(x.shape[0])
    if running_mean is not None:
        running_mean.copy_((1 - momentum) * widened(running_mean) + momentum * mean)
    return result


centre_columns.register_fake(_centre_columns_result)


def _centre_columns_aten(x: Tensor, seen: Tensor, running_mean: Tensor | None, momentum: float = 0.1) -> Tensor:
    mean = double(x).sum(0) / x.shape[0]
    seen.copy_(seen + x.shape[0])
    if running_mean is not None:
        running_mean.copy_(double(running_mean).mul_(1 - momentum).add_(mean, alpha=momentum))
    return (double(x) - mean).to(x.dtype)


def _decay_conditions(tensors: Sequence[Tensor], factor: float) -> None:
    for position, tensor in enumerate(tensors):
        conditions.dtype_among("decay_", f"tensors[{position}]", tensor, FLOATS + COMPLEX)
        conditions.writable("decay_", f"tensors[{position}]", tensor)


@torch.library.custom_op("reference::decay_", mutates_args=("tensors",))
def decay_(tensors: Sequence[Tensor], factor: float) -> None:
    """Multiply each of some tensors, of any shapes, by a factor, in place."""
    _decay_conditions(tensors, factor)
    for tensor in tensors:
        tensor.mul_(factor)


decay_.register_fake(_decay_conditions)


def _decay_aten(tensors: Sequence[Tensor], factor: float) -> None:
    for tensor in tensors:
        tensor.copy_(tensor * factor)


def _accumulate_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    total, value = (normal(4, 3, device=device, dtype=dtype, seed=seed) for seed in range(2))
    yield Sample((total, value), name="matrices")
    counts = (normal(5, device=device, dtype=torch.int64, seed=seed) for seed in range(2))
    yield Sample(tuple(counts), name="integers")


def _difference_into_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample(tuple(normal(3, 5, device=device, dtype=dtype, seed=seed) for seed in range(3)), name="matrices")


def _centre_columns_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x = normal(5, 3, device=device, dtype=dtype)
    seen = torch.tensor(20, device=device)
    yield Sample((x, seen, normal(3, device=device, dtype=dtype, seed=1)), name="with running mean")
    yield Sample((x, seen, None, 0.5), name="without running mean")


def _decay_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    tensors = [normal(4, 3, device=device, dtype=dtype), normal(5, device=device, dtype=dtype, seed=1)]
    yield Sample((tensors, 0.75), name="matrix and vector")


SPECS = [
    OpSpec(
        accumulate_,
        _accumulate_samples,
        reference=_accumulate_aten,
        about="writes to its first argument and returns nothing",
    ),
    OpSpec(
        difference_into,
        _difference_into_samples,
        reference=_difference_into_aten,
        about="an out-argument: written to, never read",
    ),
    OpSpec(
        centre_columns,
        _centre_columns_samples,
        reference=_centre_columns_aten,
        about="an argument that is written to only if given, beside one that always is and a result",
    ),
    OpSpec(
        decay_,
        _decay_samples,
        reference=_decay_aten,
        about="writes to every element of a list of tensors",
    ),
]
