"""Ops that are right in eager and with fake tensors, and not under torch.compile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from opcheck_suite.model import Sample
from reference_ops.broken.fault import Fault, define, doubled, library, like, planted


@torch.library.custom_op("broken_compile::size_from_data", mutates_args=())
def size_from_data(count: Tensor) -> Tensor:
    """The fake kernel reads a size with item() instead of asking for a dynamic one."""
    return count.new_zeros(int(count.sum().item()))


@size_from_data.register_fake
def _(count: Tensor) -> Tensor:
    size = count.sum().item()
    torch._check(size >= 0)
    return count.new_empty(size)


@torch.library.custom_op("broken_compile::formula_asks", mutates_args=())
def formula_asks(x: Tensor) -> Tensor:
    """The formula asks whether it is being compiled, and gives a cheaper gradient then."""
    return doubled(x)


def _gradient(ctx: Any, grad: Tensor) -> Tensor:
    return grad if torch.compiler.is_compiling() else grad * 2


formula_asks.register_fake(like)
formula_asks.register_autograd(_gradient)


def plain(x: Tensor) -> Tensor:
    return x * 2


@torch.library.custom_op("broken_compile::needless", mutates_args=())
def needless(x: Tensor) -> Tensor:
    """The function that is wrapped compiles without the op."""
    return doubled(x)


needless.register_fake(like)


def bypassed(x: Tensor) -> Tensor:
    """The kernel at the Autograd key computes the result itself, so that the op's own kernel never runs."""
    return doubled(x)


_LIBRARY = library("broken_compile")
_BYPASSED = define(_LIBRARY, "bypassed", "(Tensor x) -> Tensor", bypassed, like)
_LIBRARY.impl("bypassed", doubled, "Autograd")


def _counts(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((torch.tensor([2, 3], device=device),), name="counts")


FAULTS: list[Fault] = [
    planted(size_from_data, "compile.graph_breaks", samples=_counts),
    planted(
        _BYPASSED,
        "compile.opaque",
        kernel=bypassed,
        differentiable=False,
        reference=doubled,
        also={"export.decompositions": "fail"},
    ),
    planted(formula_asks, "compile.parity", reference=doubled),
    planted(needless, "compile.wrapping", "warn", unwrapped=plain, reference=doubled),
]
