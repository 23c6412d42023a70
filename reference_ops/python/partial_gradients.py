"""Differentiable ops some of whose arguments or results have no gradient."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python import conditions
from reference_ops.python.conditions import COMPLEX, FLOATS
from reference_ops.python.data import integers, normal


def _hashed_rows_result(table: Tensor, keys: Tensor) -> Tensor:
    conditions.dims("hashed_rows", "table", table, 2)
    conditions.dtype_among("hashed_rows", "table", table, FLOATS + COMPLEX)
    conditions.dtype_among("hashed_rows", "keys", keys, (torch.int64,))
    conditions.same_device("hashed_rows", "table", table, "keys", keys)
    torch._check(table.shape[0] > 0, lambda: "hashed_rows: expected a table of at least one row, got none")
    return table.new_empty((*keys.shape, table.shape[1]))


@torch.library.custom_op("reference::hashed_rows", mutates_args=())
def hashed_rows(table: Tensor, keys: Tensor) -> Tensor:
    """Rows of table (rows, width) for keys of any shape: row ``key modulo rows``, so that no key is out of range."""
    return _hashed_rows_result(table, keys).copy_(table[keys.remainder(table.shape[0])])


hashed_rows.register_fake(_hashed_rows_result)


def _hashed_rows_save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    table, keys = inputs
    ctx.save_for_backward(keys)
    ctx.rows = table.shape[0]


def _hashed_rows_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None]:
    if not ctx.needs_input_grad[0]:
        return None, None
    (keys,) = ctx.saved_tensors
    table_grad = grad.new_zeros((ctx.rows, grad.shape[-1]))
    index = keys.remainder(ctx.rows).flatten()
    # Keys that share a row add up; assigning instead would lose all but one.
    return table_grad.index_add(0, index, grad.reshape(index.shape[0], grad.shape[-1])), None


hashed_rows.register_autograd(_hashed_rows_gradient, setup_context=_hashed_rows_save)


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _gate_result(x: Tensor, threshold: Tensor) -> Tensor:
    conditions.dtype_among("gate", "x", x, FLOATS)
    conditions.alike("gate", "x", x, "threshold", threshold)
    return x.new_empty(x.shape)


@torch.library.custom_op("reference::gate", mutates_args=())
def gate(x: Tensor, threshold: Tensor) -> Tensor:
    """x where it exceeds threshold, else 0. The gradient to threshold is 0 wherever there is one."""
    return _gate_result(x, threshold).copy_(torch.where(x > threshold, x, 0))


gate.register_fake(_gate_result)


def _gate_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None]:
    x, threshold = ctx.saved_tensors
    return torch.where(x > threshold, grad, 0) if ctx.needs_input_grad[0] else None, None


gate.register_autograd(_gate_gradient, setup_context=_save_inputs)


def _square_and_sign_result(x: Tensor) -> tuple[Tensor, Tensor]:
    conditions.dtype_among("square_and_sign", "x", x, FLOATS)
    return x.new_empty(x.shape), x.new_empty(x.shape, dtype=torch.int8)


@torch.library.custom_op("reference::square_and_sign", mutates_args=())
def square_and_sign(x: Tensor) -> tuple[Tensor, Tensor]:
    """x squared, and the sign of x as int8."""
    square, sign = _square_and_sign_result(x)
    return square.copy_(x * x), sign.copy_((x > 0).to(torch.int8) - (x < 0).to(torch.int8))


square_and_sign.register_fake(_square_and_sign_result)


def _square_and_sign_gradient(ctx: Any, grad: Tensor, _sign_grad: Tensor | None) -> Tensor | None:
    (x,) = ctx.saved_tensors
    return 2 * x * grad if ctx.needs_input_grad[0] else None


square_and_sign.register_autograd(_square_and_sign_gradient, setup_context=_save_inputs)


def _matrix(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype),), name="matrix")


def _two_matrices(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample(tuple(normal(3, 4, device=device, dtype=dtype, seed=seed) for seed in range(2)), name="matrices")


def _hashed_rows_samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    table = normal(5, 3, device=device, dtype=dtype)
    yield Sample((table, integers(4, device=device)), name="vector of keys")
    yield Sample((table, integers(2, 7, device=device, seed=1)), name="matrix of keys, some equal")


SPECS = [
    OpSpec(
        hashed_rows,
        _hashed_rows_samples,
        reference=lambda table, keys: torch.nn.functional.embedding(keys % len(table), table),
        differentiable=True,
        about="an integer argument beside a differentiable one",
    ),
    OpSpec(
        gate,
        _two_matrices,
        reference=lambda x, threshold: x.masked_fill(~(x > threshold), 0),
        differentiable=True,
        about="a floating argument whose gradient is zero, and given as None",
    ),
    OpSpec(
        square_and_sign,
        _matrix,
        reference=lambda x: (x.square(), torch.nan_to_num(x.sign()).to(torch.int8)),
        differentiable=True,
        about="an integer result beside a differentiable one",
    ),
]
