"""Ops that are right in eager and with fake tensors, and not under torch.compile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from opcheck_suite.model import Sample
from reference_ops.broken.fault import Fault, define, doubled, library, like, matrix, planted


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


@torch.library.custom_op("broken_compile::formula_keeps_number", mutates_args=())
def formula_keeps_number(x: Tensor) -> Tensor:
    """The formula keeps a size as a plain int, which compiled code is then only good for."""
    return doubled(x)


def _keep_rows(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.rows = int(inputs[0].shape[0]) if inputs[0].dim() else 1


def _gradient_of_rows(ctx: Any, grad: Tensor) -> Tensor:
    return grad * 2 * (ctx.rows / ctx.rows) if ctx.rows else grad


formula_keeps_number.register_fake(like)
formula_keeps_number.register_autograd(_gradient_of_rows, setup_context=_keep_rows)


@torch.library.custom_op("broken_compile::fake_counts", mutates_args=())
def fake_counts(x: Tensor, times: int) -> Tensor:
    """The fake kernel counts to a number instead of computing with it."""
    torch._check(times > 0)
    return x.new_empty((times, *x.shape)).copy_(x)


@fake_counts.register_fake
def _(x: Tensor, times: int) -> Tensor:
    torch._check(times > 0)
    rows = 0
    for _ in range(times):
        rows += 1
    return x.new_empty((rows, *x.shape))


@torch.library.custom_op("broken_compile::packed_and_flexible", mutates_args=(), tags=(torch.Tag.flexible_layout,))
def packed_and_flexible(x: Tensor) -> Tensor:
    """The op refuses strided tensors, and its tag says that the compiler may choose the strides."""
    torch._check(x.is_contiguous(), lambda: "expected a contiguous tensor")
    return doubled(x)


packed_and_flexible.register_fake(like)


CALLS: list[int] = []


@torch.library.custom_op("broken_compile::counted", mutates_args=())
def counted(x: Tensor) -> None:
    """The op keeps a list of calls, of which no compiler knows."""
    CALLS.append(x.numel())


@counted.register_fake
def _(x: Tensor) -> None:
    return None


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


@torch.library.custom_op("broken_compile::own_functionalization", mutates_args=())
def own_functionalization(x: Tensor) -> Tensor:
    """A rule for functionalization computes the result in place of the op, also where the op refuses its argument."""
    torch._check(x.dim() == 2, lambda: f"expected a matrix, got {x.dim()} dimensions")
    return doubled(x)


@own_functionalization._opoverload.py_functionalize_impl
def _(ctx: Any, x: Tensor) -> Any:
    return ctx.wrap_tensors((ctx.unwrap_tensors(x) * 2).contiguous())


own_functionalization.register_fake(like)


def _counts(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((torch.tensor([2, 3], device=device),), name="counts")


def _matrix_and_count(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    for sample in matrix(device, dtype):
        yield Sample((*sample.args, 5), name="matrix and count")


def _repeated(x: Tensor, times: int) -> Tensor:
    return x.expand(times, *x.shape)


FAULTS: list[Fault] = [
    planted(size_from_data, "compile.graph_breaks", samples=_counts),
    # nor do dispatch modes see it
    planted(
        _BYPASSED,
        "compile.opaque",
        also={"dispatch.modes": "fail", "export.decompositions": "fail"},
        kernel=bypassed,
        differentiable=False,
        reference=doubled,
    ),
    planted(formula_asks, "compile.parity", reference=doubled),
    planted(
        own_functionalization,
        "compile.opaque",
        also={"compile.parity": "fail", "export.decompositions": "fail"},
        reference=doubled,
    ),
    planted(formula_keeps_number, "compile.dynamic", reference=doubled),
    planted(fake_counts, "compile.dynamic", "warn", samples=_matrix_and_count, reference=_repeated),
    planted(packed_and_flexible, "compile.layout", requires_contiguous=True, reference=doubled),
    planted(counted, "compile.effects", also={"registration.effects": "fail", "export.decompositions": "fail"}),
    planted(needless, "compile.wrapping", "warn", unwrapped=plain, reference=doubled),
]
