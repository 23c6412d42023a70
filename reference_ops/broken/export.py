"""Ops that are right in eager, with fake tensors and under torch.compile, and not in an exported program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from opcheck_suite.model import Sample
from reference_ops.broken.fault import COMPILER, Fault, define, doubled, library, like, planted, two_vectors
from reference_ops.python.data import normal


@torch.library.custom_op("broken_export::asks_who_traces", mutates_args=())
def asks_who_traces(x: Tensor) -> Tensor:
    """The fake kernel promises another shape while a program is exported."""
    return doubled(x)


@asks_who_traces.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.numel()) if torch.compiler.is_exporting() else like(x)


def keyword(x: Tensor, **options: float) -> Tensor:
    """An argument that must be given by name has a name that Python reserves: no graph that names it can be run."""
    return doubled(x) + options["lambda"]


def _keyword_fake(x: Tensor, **options: float) -> Tensor:
    return like(x)


@torch.library.custom_op("broken_export::number_of_rows", mutates_args=())
def number_of_rows(x: Tensor, rows: int) -> Tensor:
    """The fake kernel makes a plain number of the number of rows, which may come from the size of a tensor."""
    return x.new_zeros((rows, *x.shape)).copy_(x)


@number_of_rows.register_fake
def _(x: Tensor, rows: int) -> Tensor:
    return x.new_empty((int(rows), *x.shape))


def _hint(size: int) -> int:
    """The value that a size has in the call that is traced, which torch keeps beside its symbol."""
    return size.node.hint if isinstance(size, torch.SymInt) else size


@torch.library.custom_op("broken_export::remembers_rows", mutates_args=())
def remembers_rows(x: Tensor) -> Tensor:
    """The fake kernel gives the number of rows in the call that is traced as that of every call."""
    return doubled(x)


@remembers_rows.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty((_hint(x.shape[0]), *x.shape[1:])) if x.dim() else like(x)


def gone_without_grad(x: Tensor) -> Tensor:
    """Where gradients are not recorded, the kernel at the Autograd key computes the result from torch's own ops."""
    if not torch.is_grad_enabled():
        return doubled(x)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.broken_export.gone_without_grad(x)


def outer(a: Tensor, b: Tensor) -> Tensor:
    """The fake kernel of a kernel in C++ gives the number of rows in the call that is traced as that of every call."""
    return torch.outer(a, b)


def _outer_fake(a: Tensor, b: Tensor) -> Tensor:
    torch._check(a.dim() == 1 and b.dim() == 1)
    return a.new_empty((_hint(a.shape[0]), b.shape[0]), dtype=torch.result_type(a, b))


_LIBRARY = library("broken_export")
_KEYWORD = define(_LIBRARY, "keyword", "(Tensor x, *, float lambda) -> Tensor", keyword, _keyword_fake)
_GONE = define(_LIBRARY, "gone_without_grad", "(Tensor x) -> Tensor", doubled, like)
_LIBRARY.impl("gone_without_grad", gone_without_grad, "Autograd")
# the kernel is torch's own in C++: a package is for ops that run without Python
_OUTER = define(_LIBRARY, "outer", "(Tensor a, Tensor b) -> Tensor", torch.outer, _outer_fake)


def _matrix_and_keyword(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    kwargs: dict[str, Any] = {"lambda": 0.5}
    yield Sample((normal(3, 4, device=device, dtype=dtype),), kwargs, name="matrix and number")


def _vector_and_rows(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, device=device, dtype=dtype), 3), name="as many rows as elements")


FAULTS: list[Fault] = [
    planted(asks_who_traces, "export.program", reference=doubled),
    # graphs of torch.compile name the argument, too, and torch's own utils ask inspect for a signature
    planted(
        _KEYWORD,
        "export.program",
        also={"opcheck.utils": "fail", "compile.graph_breaks": "fail", "compile.parity": "fail"},
        kernel=keyword,
        samples=_matrix_and_keyword,
    ),
    planted(
        number_of_rows,
        "export.dynamic",
        "warn",
        also={"fake.symbolic": "fail", "compile.dynamic": "warn"},
        samples=_vector_and_rows,
    ),
    planted(remembers_rows, "export.roundtrip", reference=doubled),
    planted(
        _GONE,
        "export.decompositions",
        also={"compile.opaque": "fail"},
        kernel=gone_without_grad,
        differentiable=False,
        reference=doubled,
    ),
    planted(
        _OUTER,
        "export.aotinductor",
        also={"export.roundtrip": "fail"},
        kernel=outer,
        samples=two_vectors,
        unavailable=COMPILER,
    ),
]
