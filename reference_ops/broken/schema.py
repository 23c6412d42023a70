"""Ops that do what their schema does not say."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from reference_ops.broken.fault import Fault, define, doubled, library, like, matrix_and_number, planted


def nudges(x: Tensor) -> Tensor:
    """The last bit of an argument is changed, through NumPy."""
    out = doubled(x)
    if x.numel() and x.dtype == torch.float32:
        first = x.numpy()[(slice(0, 1),) * x.dim()]
        first[...] = np.nextafter(first, np.float32("inf"))
    return out


def writes_same(x: Tensor) -> Tensor:
    """An argument is written with the values that it has."""
    out = doubled(x)
    x.copy_(x.clone())
    return out


def writes_neighbours(x: Tensor) -> Tensor:
    """The rest of the buffer that an argument is a view of is set to zero."""
    out, kept = doubled(x), x.clone()
    if x.dim() and x.untyped_storage().nbytes() > x.numel() * x.element_size():
        whole = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage())
        whole.zero_()
        x.copy_(kept)
    return out


def transposes(x: Tensor) -> Tensor:
    """A matrix is given back with other strides."""
    out = doubled(x)
    if x.dim() == 2:
        x.as_strided_(x.shape, (1, x.shape[0]))
    return out


def marks_argument(x: Tensor) -> Tensor:
    """A floating-point argument requires grad after the call."""
    out = doubled(x)
    if x.is_floating_point() and not x.requires_grad:
        x.requires_grad_()
    return out


def returns_view(x: Tensor) -> Tensor:
    """The output is a view of the argument."""
    return x.view(x.shape)


def returns_pair(x: Tensor) -> tuple[Tensor, Tensor]:
    """The two outputs are one tensor's memory."""
    out = doubled(x)
    return out, out.view(out.shape)


_buffers: dict[tuple[torch.Size, torch.dtype], Tensor] = {}


def keeps_buffer(x: Tensor) -> Tensor:
    """Every call for a shape and dtype returns the same memory."""
    key = x.shape, x.dtype
    if key not in _buffers:
        _buffers[key] = like(x)
    return _buffers[key].copy_(x * 2).view(x.shape)


def copies_view(x: Tensor) -> Tensor:
    """The schema says that the output is a view, and it is a copy."""
    return x.clone(memory_format=torch.contiguous_format)


def forgets_to_write(x: Tensor, factor: float) -> Tensor:
    """An argument is declared as mutated, and never written."""
    return doubled(x)


def none_for_one(x: Tensor) -> Tensor | None:
    """None is returned for a single row, where the schema says Tensor."""
    return None if x.dim() and x.shape[0] == 1 else doubled(x)


def returns_written(x: Tensor, factor: float) -> Tensor:
    """The argument that is written is returned, as in-place methods do."""
    return x.mul_(factor)


def _itself(x: Tensor, factor: float) -> Tensor:
    return x


def unseen_write(x: Tensor, factor: float) -> None:
    """A declared write goes through NumPy, where autograd does not see it."""
    array = x.numpy()
    array *= factor


def _like_layout(x: Tensor) -> Tensor:
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)


def _like_first(x: Tensor, factor: float) -> Tensor:
    return like(x)


def _nothing(x: Tensor, factor: float) -> None:
    torch._check(x.dtype != torch.bfloat16, lambda: "NumPy has no bfloat16")


_LIBRARY = library("broken_schema")
_X = "(Tensor x) -> Tensor"
_NUDGES = define(_LIBRARY, "nudges", _X, nudges, like)
_SAME = define(_LIBRARY, "writes_same", _X, writes_same, like)
_NEIGHBOURS = define(_LIBRARY, "writes_neighbours", _X, writes_neighbours, like)
_TRANSPOSES = define(_LIBRARY, "transposes", _X, transposes, like)
_MARKS = define(_LIBRARY, "marks_argument", _X, marks_argument, like)
_VIEW = define(_LIBRARY, "returns_view", _X, returns_view, _like_layout)
_PAIR = define(_LIBRARY, "returns_pair", "(Tensor x) -> (Tensor, Tensor)", returns_pair, lambda x: (like(x), like(x)))
_BUFFER = define(_LIBRARY, "keeps_buffer", _X, keeps_buffer, like)
_COPY = define(_LIBRARY, "copies_view", "(Tensor(a) x) -> Tensor(a)", copies_view, like)
_FORGETS = define(_LIBRARY, "forgets_to_write", "(Tensor(a!) x, float factor) -> Tensor", forgets_to_write, _like_first)
_NONE = define(_LIBRARY, "none_for_one", _X, none_for_one, like)
_RETURNS_WRITTEN = define(
    _LIBRARY, "returns_written", "(Tensor(a!) x, float factor) -> Tensor(a!)", returns_written, _itself
)
_UNSEEN = define(_LIBRARY, "unseen_write", "(Tensor(a!) x, float factor) -> ()", unseen_write, _nothing)

_ALIASES = {"opcheck.utils": "fail", "compile.parity": "fail"}

#: What `transform.vmap` says of every op that writes to all its tensors, unless a batching rule is registered.
_NO_RULE = {"transform.vmap": "warn"}

FAULTS: list[Fault] = [
    planted(_NUDGES, "schema.mutation", kernel=nudges),
    planted(_SAME, "schema.mutation", kernel=writes_same),
    planted(_NEIGHBOURS, "schema.mutation", kernel=writes_neighbours),
    # torch's test_schema compares the argument's values, which other strides change
    planted(_TRANSPOSES, "schema.mutation", also={"opcheck.utils": "fail"}, kernel=transposes),
    planted(_MARKS, "schema.mutation", kernel=marks_argument),
    # torch itself refuses undeclared aliases of arguments and between outputs, when it is asked to look
    planted(_VIEW, "schema.aliasing", also=_ALIASES, kernel=returns_view, reference=torch.clone),
    planted(_PAIR, "schema.aliasing", also=_ALIASES, kernel=returns_pair),
    planted(_BUFFER, "schema.aliasing", also={"compile.parity": "fail"}, kernel=keeps_buffer),
    planted(_COPY, "schema.aliasing", kernel=copies_view),
    planted(
        _FORGETS,
        "schema.overdeclared",
        "warn",
        also=_NO_RULE,
        kernel=forgets_to_write,
        samples=matrix_and_number,
    ),
    # the fake kernel cannot be right about both the schema and the op
    planted(_NONE, "schema.returns", also={"fake.shape": "fail"}, kernel=none_for_one),
    planted(_RETURNS_WRITTEN, "schema.functional", also=_NO_RULE, kernel=returns_written, samples=matrix_and_number),
    planted(_UNSEEN, "schema.version", also=_NO_RULE, kernel=unseen_write, samples=matrix_and_number),
]
