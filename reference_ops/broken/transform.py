"""Ops whose batching rules give something else than a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from opcheck_suite.model import Sample
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


def _beside(xs: Sequence[Tensor]) -> Tensor:
    torch._check(len(xs) > 0)
    torch._check(all(x.dim() > 0 and x.shape[:-1] == xs[0].shape[:-1] and x.dtype == xs[0].dtype for x in xs))
    return xs[0].new_empty((*xs[0].shape[:-1], sum(x.shape[-1] for x in xs)))


@torch.library.custom_op("broken_transform::first_member", mutates_args=())
def first_member(xs: Sequence[Tensor]) -> Tensor:
    """The rule batches the first member of the list, and takes the others of the first element for all."""
    return _beside(xs).copy_(torch.cat(list(xs), -1))


first_member.register_fake(_beside)


@first_member.register_vmap
def _(info: Any, in_dims: tuple[list[int | None]], xs: list[Tensor]) -> tuple[Tensor, int]:
    (dims,) = in_dims
    batch = xs[0].expand(info.batch_size, *xs[0].shape) if dims[0] is None else xs[0].movedim(dims[0], 0)
    others = [x if dim is None else x.select(dim, 0) for x, dim in zip(xs[1:], dims[1:], strict=True)]
    return first_member([batch, *(x.expand(info.batch_size, *x.shape) for x in others)]), 0


def _noise(x: Tensor) -> Tensor:
    return like(x).copy_(x + torch.randn(x.shape, dtype=x.dtype, device=x.device))


def _random(name: str, kernel: Callable[..., Any]) -> Any:
    seeded = (torch.Tag.nondeterministic_seeded,)
    op = torch.library.custom_op(f"broken_transform::{name}", kernel, mutates_args=(), tags=seeded)
    op.register_fake(like)
    return op


def ignores_same(x: Tensor) -> Tensor:
    """The rule ignores info.randomness, and draws numbers for the batch as if it were one more dimension."""
    return _noise(x)


def one_draw(x: Tensor) -> Tensor:
    """The rule ignores info.randomness, and draws numbers once for all elements of the batch."""
    return _noise(x)


_IGNORES_SAME = _random("ignores_same", ignores_same)
_ONE_DRAW = _random("one_draw", one_draw)


@_IGNORES_SAME.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: Tensor) -> tuple[Tensor, int]:
    return _IGNORES_SAME(x.movedim(in_dims[0] or 0, 0)), 0


@_ONE_DRAW.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], x: Tensor) -> tuple[Tensor, int]:
    rows = x.movedim(in_dims[0] or 0, 0)
    return rows + _ONE_DRAW(torch.zeros_like(rows[0])), 0


def _two_in_a_list(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in two_matrices(device, dtype):
        yield Sample((list(sample.args),), name="two in a list")


FAULTS: list[Fault] = [
    planted(batch_in_front, "transform.vmap", reference=doubled),
    planted(sums_rows, "transform.vmap", reference=lambda x: x.sum(0)),
    planted(no_rule, "transform.vmap", "warn"),
    planted(ranks_apart, "transform.vmap", samples=two_matrices, reference=torch.add),
    planted(first_member, "transform.vmap", samples=_two_in_a_list, reference=lambda xs: torch.cat(list(xs), -1)),
    planted(_IGNORES_SAME, "transform.vmap", kernel=ignores_same),
    planted(_ONE_DRAW, "transform.vmap", kernel=one_draw),
]
