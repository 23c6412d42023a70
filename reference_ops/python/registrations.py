"""Ops that register more than a kernel and a fake: kernels by device, a vmap rule, an autocast rule."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python import conditions
from reference_ops.python.conditions import COMPLEX, FLOATS, INTEGERS, NUMPY_FLOATS
from reference_ops.python.data import normal
from reference_ops.python.precision import double, widened


def _running_total_result(x: Tensor) -> Tensor:
    conditions.at_least_one_dim("running_total", "x", x)
    conditions.dtype_among("running_total", "x", x, NUMPY_FLOATS + COMPLEX + INTEGERS)
    return x.new_empty(x.shape, dtype=torch.int64 if x.dtype in INTEGERS else x.dtype)


@torch.library.custom_op("reference::running_total", mutates_args=(), device_types="cpu")
def running_total(x: Tensor) -> Tensor:
    """Running total along the last dimension; integers are added up in int64."""
    result = _running_total_result(x)
    # NumPy would warn where infinity becomes NaN, and add up uint8 in uint64; torch does neither.
    with np.errstate(all="ignore"):
        total = np.cumsum(x.detach().numpy(), axis=-1, dtype=result.numpy().dtype)
    return result.copy_(torch.as_tensor(total))


@running_total.register_kernel("cuda")
def _(x: Tensor) -> Tensor:
    return _running_total_result(x).copy_(torch.cumsum(x, -1))


running_total.register_fake(_running_total_result)


def _centre_rows_result(x: Tensor) -> Tensor:
    conditions.at_least_one_dim("centre_rows", "x", x)
    conditions.dtype_among("centre_rows", "x", x, FLOATS + COMPLEX)
    return x.new_empty(x.shape)


@torch.library.custom_op("reference::centre_rows", mutates_args=())
def centre_rows(x: Tensor) -> Tensor:
    """x minus the mean of its rows, for x (..., width)."""
    result = _centre_rows_result(x)
    wide = widened(x)
    return result.copy_(wide - wide.mean(-1, keepdim=True))


centre_rows.register_fake(_centre_rows_result)


@centre_rows.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: Tensor) -> tuple[Tensor, int]:
    # Rows are along the last dimension, so that a batch in front changes nothing, unless x had none to begin with.
    batch = in_dims[0] or 0
    torch._check(x.dim() > 1, lambda: "centre_rows: expected x of at least 1 dimension, got a 0-d tensor")
    return centre_rows(x.movedim(batch, 0)), 0


def _gram_result(x: Tensor, y: Tensor) -> Tensor:
    conditions.dims("gram", "x", x, 2)
    conditions.dims("gram", "y", y, 2)
    conditions.dtype_among("gram", "x", x, FLOATS + COMPLEX)
    conditions.same_kind("gram", "x", x, "y", y)
    conditions.same_size("gram", "the last dimensions of x and y", x.shape[1], y.shape[1])
    return x.new_empty((x.shape[0], y.shape[0]))


@torch.library.custom_op("reference::gram", mutates_args=())
def gram(x: Tensor, y: Tensor) -> Tensor:
    """Products (n, m) of the rows of x (n, k) with the rows of y (m, k)."""
    return _gram_result(x, y).copy_(x @ y.t())


gram.register_fake(_gram_result)
gram.register_autocast("cpu", torch.bfloat16)
gram.register_autocast("cuda", torch.float16)


def _running_total_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype),), name="matrix")
    yield Sample((normal(5, device=device, dtype=dtype or torch.int32),), name="integers")


def _centre_rows_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(4, 3, device=device, dtype=dtype),), name="matrix")
    yield Sample((normal(2, 3, 2, 5, device=device, dtype=dtype),), name="images")


def _gram_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    x = normal(3, 4, device=device, dtype=dtype)
    yield Sample((x, normal(5, 4, device=device, dtype=dtype, seed=1)), name="two matrices")


SPECS = [
    OpSpec(
        running_total,
        _running_total_samples,
        reference=lambda x: torch.cumsum(x, -1),
        about="kernels registered by device: NumPy on the CPU, ATen on CUDA",
    ),
    OpSpec(
        centre_rows,
        _centre_rows_samples,
        reference=lambda x: (double(x) - double(x).sum(-1, keepdim=True) / x.shape[-1]).to(x.dtype),
        about="a vmap rule in one call instead of the loop torch falls back on",
    ),
    OpSpec(
        gram,
        _gram_samples,
        reference=lambda x, y: torch.einsum("nk,mk->nm", double(x), double(y)).to(x.dtype),
        about="an autocast rule: the op computes in half precision under torch.autocast",
    ),
]
