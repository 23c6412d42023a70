"""Ops whose batching rules give something else than a loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, doubled, like, planted, two_matrices


@torch.library.custom_op("broken_transform::batch_in_front", mutates_args=())
def batch_in_front(x: Tensor) -> Tensor:
    """The rule takes for granted that the batch is the first dimension."""
    return doubled(x)


batch_in_front.register_fake(like)


@batch_in_front.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: Tensor) -> tuple[Tensor, int]:
    return batch_in_front(x), 0


@torch.library.custom_op("broken_transform::sums_rows", mutates_args=())
def sums_rows(x: Tensor) -> Tensor:
    """The rule sums over the batch and not over the rows, which shows in no shape where there are as many of them."""
    return x.new_empty(x.shape[1:]).copy_(x.sum(0))


@sums_rows.register_fake
def _(x: Tensor) -> Tensor:
    torch._check(x.dim() > 0)
    return x.new_empty(x.shape[1:])


@sums_rows.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: Tensor) -> tuple[Tensor, int]:
    return sums_rows(x.movedim(in_dims[0] or 0, 0)), 0


def _broadcast(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty(torch.broadcast_shapes(a.shape, b.shape), dtype=torch.result_type(a, b))


@torch.library.custom_op("broken_transform::ranks_apart", mutates_args=())
def ranks_apart(a: Tensor, b: Tensor) -> Tensor:
    """The rule does not pad ranks, and a batch of rows is broadcast against the wrong dimension."""
    return _broadcast(a, b).copy_(a + b)


ranks_apart.register_fake(_broadcast)


@ranks_apart.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], a: Tensor, b: Tensor) -> tuple[Tensor, int]:
    moved = [t if dim is None else t.movedim(dim, 0) for t, dim in zip((a, b), in_dims, strict=True)]
    return ranks_apart(*moved), 0


@torch.library.custom_op("broken_transform::no_rule", mutates_args=("x",))
def no_rule(x: Tensor) -> None:
    """The op writes to its argument, which vmap supports with a batching rule only, and has none."""
    x.mul_(2)


FAULTS: list[Fault] = [
    planted(batch_in_front, "transform.vmap", reference=doubled),
    planted(sums_rows, "transform.vmap", reference=lambda x: x.sum(0)),
    planted(no_rule, "transform.vmap", "warn"),
    planted(ranks_apart, "transform.vmap", samples=two_matrices, reference=torch.add),
]
