"""Functional ops made with ``torch.library.custom_op``: the kinds of arguments and results a schema can have."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.types import Number

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python import conditions
from reference_ops.python.conditions import COMPLEX, FLOATS, INTEGERS, NUMPY_FLOATS
from reference_ops.python.data import normal
from reference_ops.python.precision import double, widened


def _row_sums_result(x: Tensor) -> tuple[Tensor, Tensor, int]:
    conditions.at_least_one_dim("row_sums", "x", x)
    conditions.dtype_among("row_sums", "x", x, FLOATS + COMPLEX + INTEGERS)
    rows = x.shape[:-1]
    dtype = torch.int64 if x.dtype in INTEGERS else x.dtype
    return x.new_empty(rows, dtype=dtype), x.new_empty(rows, dtype=torch.int64), x.shape[-1]


@torch.library.custom_op("reference::row_sums", mutates_args=())
def row_sums(x: Tensor) -> tuple[Tensor, Tensor, int]:
    """Sum, number of nonzero elements, and length of the rows of x (..., width)."""
    total, nonzero, width = _row_sums_result(x)
    total.copy_(x.sum(-1))
    nonzero.copy_((x != 0).sum(-1))
    return total, nonzero, width


row_sums.register_fake(_row_sums_result)


def _row_sums_aten(x: Tensor) -> tuple[Tensor, Tensor, int]:
    total = x.long().sum(-1) if x.dtype in INTEGERS else double(x).sum(-1).to(x.dtype)
    return total, torch.count_nonzero(x, dim=-1), x.size(-1)


def _bias_relu_result(x: Tensor, bias: Tensor | None = None) -> Tensor:
    conditions.dtype_among("bias_relu", "x", x, FLOATS)
    if bias is not None:
        conditions.at_least_one_dim("bias_relu", "x", x)
        conditions.dims("bias_relu", "bias", bias, 1)
        conditions.same_size("bias_relu", "the last dimension of x and the length of bias", x.shape[-1], bias.shape[0])
        conditions.same_kind("bias_relu", "x", x, "bias", bias)
    # Layout is part of the answer: a channels_last or transposed input keeps its order of strides.
    return torch.empty_like(x)


@torch.library.custom_op("reference::bias_relu", mutates_args=())
def bias_relu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    """max(x + bias, 0) for x (..., n) and bias (n); the result has the layout of x."""
    result = _bias_relu_result(x, bias)
    return result.copy_(torch.relu(x if bias is None else x + bias))


bias_relu.register_fake(_bias_relu_result)


def _weighted_sum_result(tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    torch._check(len(tensors) > 0, lambda: "weighted_sum: expected at least one tensor, got an empty list")
    torch._check(
        len(tensors) == len(weights),
        lambda: f"weighted_sum: expected a weight a tensor, got {len(tensors)} tensors and {len(weights)} weights",
    )
    conditions.dtype_among("weighted_sum", "tensors", tensors[0], FLOATS + COMPLEX)
    for position, tensor in enumerate(tensors[1:], 1):
        conditions.alike("weighted_sum", "tensors[0]", tensors[0], f"tensors[{position}]", tensor)
    return tensors[0].new_empty(tensors[0].shape)


@torch.library.custom_op("reference::weighted_sum", mutates_args=())
def weighted_sum(tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Sum of tensors[i] * weights[i]; all tensors have one shape."""
    result = _weighted_sum_result(tensors, weights)
    total = torch.zeros_like(widened(result))
    for tensor, weight in zip(tensors, weights, strict=True):
        total.add_(tensor, alpha=weight)
    return result.copy_(total)


weighted_sum.register_fake(_weighted_sum_result)


def _weighted_sum_aten(tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    terms = [double(tensor) * weight for tensor, weight in zip(tensors, weights, strict=True)]
    return torch.stack(terms).sum(0).to(tensors[0].dtype)


def _scaled_result(x: Tensor, factor: Number) -> Tensor:
    conditions.dtype_among("scaled", "x", x, FLOATS + COMPLEX + INTEGERS)
    return x.new_empty(x.shape, dtype=torch.result_type(x, factor))


@torch.library.custom_op("reference::scaled", mutates_args=())
def scaled(x: Tensor, factor: Number) -> Tensor:
    """x * factor, of the dtype torch promotes the two to."""
    return _scaled_result(x, factor).copy_(x * factor)


scaled.register_fake(_scaled_result)

_ROUNDINGS = {"nearest": torch.round, "down": torch.floor, "up": torch.ceil, "zero": torch.trunc}


def _round_to_result(x: Tensor, dtype: torch.dtype, device: torch.device, rounding: str = "nearest") -> Tensor:
    conditions.dtype_among("round_to", "x", x, FLOATS)
    torch._check(dtype in FLOATS, lambda: f"round_to: expected a floating dtype, got {dtype}")
    torch._check(
        rounding in _ROUNDINGS,
        lambda: f"round_to: expected rounding to be one of {', '.join(_ROUNDINGS)}, got {rounding!r}",
    )
    return x.new_empty(x.shape, dtype=dtype, device=device)


@torch.library.custom_op("reference::round_to", mutates_args=())
def round_to(x: Tensor, dtype: torch.dtype, device: torch.device, rounding: str = "nearest") -> Tensor:
    """x rounded to whole numbers, in another dtype and on another device."""
    # copy_ converts and moves; Tensor.to would hand back x itself when there is nothing to do.
    return _round_to_result(x, dtype, device, rounding).copy_(_ROUNDINGS[rounding](x))


round_to.register_fake(_round_to_result)


def _quantise_result(x: Tensor, *, step: float = 0.25, levels: int = 16, symmetric: bool = True) -> Tensor:
    conditions.dtype_among("quantise", "x", x, NUMPY_FLOATS)
    torch._check(step > 0, lambda: f"quantise: expected a positive step, got {step}")
    torch._check(levels > 0, lambda: f"quantise: expected a positive number of levels, got {levels}")
    return x.new_empty(x.shape)


@torch.library.custom_op("reference::quantise", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def quantise(x: Tensor, *, step: float = 0.25, levels: int = 16, symmetric: bool = True) -> Tensor:
    """The nearest multiple of step, at most levels / 2 steps from 0, or from 0 to levels if not symmetric."""
    result = _quantise_result(x, step=step, levels=levels, symmetric=symmetric)
    low, high = (-(levels // 2), levels // 2) if symmetric else (0, levels)
    with np.errstate(all="ignore"):  # NumPy would warn where a large number becomes infinity
        steps = np.rint(x.detach().cpu().numpy() / step)
    return result.copy_(torch.as_tensor(np.clip(steps, low, high) * step))


quantise.register_fake(_quantise_result)


def _quantise_aten(x: Tensor, *, step: float = 0.25, levels: int = 16, symmetric: bool = True) -> Tensor:
    low, high = (-(levels // 2), levels // 2) if symmetric else (0, levels)
    return (x / step).round().clamp(low, high) * step


def _row_sums_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 5, device=device, dtype=dtype),), name="matrix")
    yield Sample((normal(2, 3, 2, 3, device=device, dtype=dtype).round(),), name="images with zeros")


def _bias_relu_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x = normal(2, 4, 3, 5, device=device, dtype=dtype)
    yield Sample((x, normal(5, device=device, dtype=dtype, seed=1)), name="with bias")
    yield Sample((normal(4, 3, device=device, dtype=dtype),), name="without bias")


def _weighted_sum_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    tensors = [normal(3, 4, device=device, dtype=dtype, seed=seed) for seed in range(3)]
    yield Sample((tensors, [0.5, -1.0, 2.0]), name="three matrices")
    yield Sample((tensors[:1], [3.0]), name="one matrix")


def _scaled_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype), 2.5), name="by a float")
    yield Sample((normal(6, device=device, dtype=dtype), 3), name="by an int")


def _round_to_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x = normal(4, 3, device=device, dtype=dtype) * 5
    yield Sample((x, torch.float64, torch.device(device)), name="to double")
    yield Sample((x, x.dtype, torch.device(device), "down"), name="same dtype, down")


def _quantise_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x = normal(5, 3, device=device, dtype=dtype)
    yield Sample((x,), name="defaults")
    yield Sample((x,), {"step": 0.5, "levels": 6, "symmetric": False}, name="one-sided")


SPECS = [
    OpSpec(
        row_sums,
        _row_sums_samples,
        reference=_row_sums_aten,
        about="several results of different types, one of them an int that is a size",
    ),
    OpSpec(
        bias_relu,
        _bias_relu_samples,
        reference=lambda x, bias=None: (x if bias is None else x + bias).clamp_min(0),
        about="an optional tensor, and a result whose layout follows the input",
    ),
    OpSpec(
        weighted_sum,
        _weighted_sum_samples,
        reference=_weighted_sum_aten,
        about="a list of tensors and a list of floats",
    ),
    OpSpec(
        scaled,
        _scaled_samples,
        reference=torch.mul,
        dtypes=(torch.float32, torch.int64),
        about="a Scalar argument: the dtype of the result depends on whether it is an int or a float",
    ),
    OpSpec(
        round_to,
        _round_to_samples,
        reference=lambda x, dtype, device, rounding="nearest": _ROUNDINGS[rounding](x).to(device, dtype),
        about="dtype, device and str arguments; must copy even where nothing is to be converted",
    ),
    OpSpec(
        quantise,
        _quantise_samples,
        reference=_quantise_aten,
        about="keyword-only arguments with defaults; the kernel is NumPy",
    ),
]
