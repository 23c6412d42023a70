"""What the modules of planted faults share: `Fault`, the right halves of most faulty ops, and libraries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.python.data import normal


@dataclasses.dataclass(frozen=True, eq=False)
class Fault:
    """An op with one fault, and what the checks must say of it: this, and nothing else that is bad or a warning."""

    spec: OpSpec
    check: str
    """Id of the check that must find the fault."""
    outcome: str = "fail"
    also: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Ids of other checks that see the same fault, and their outcomes."""


def planted(
    op: Any,
    check: str,
    outcome: str = "fail",
    *,
    also: Mapping[str, str] | None = None,
    kernel: Callable[..., Any] | None = None,
    **claims: Any,
) -> Fault:
    """A fault of which the docstring of the op's function tells; ``kernel`` is that function for ops given by name."""
    function = kernel or getattr(op, "_init_fn", op)
    about = f"planted fault: {(function.__doc__ or '').strip().rstrip('.')}"
    spec = OpSpec(op, **{"samples": matrix, "devices": ("cpu",), "about": about, **claims})
    return Fault(spec, check, outcome, also or {})


def matrix(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    """One matrix. A function, so that the process that forks runs no op to make it."""
    yield Sample((normal(3, 4, device=device, dtype=dtype),), name="matrix")


def matrix_and_number(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    """A matrix and a number."""
    yield Sample((normal(3, 4, device=device, dtype=dtype), 1.5), name="matrix and number")


def two_matrices(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    """Two matrices of one shape."""
    pair = normal(3, 4, device=device, dtype=dtype), normal(3, 4, device=device, dtype=dtype, seed=1)
    yield Sample(pair, name="two matrices")


def images(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    """A batch of images."""
    yield Sample((normal(2, 3, 4, 5, device=device, dtype=dtype),), name="images")


def complex_matrix(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    """One matrix of complex numbers."""
    parts = normal(3, 4, device=device), normal(3, 4, device=device, seed=1)
    yield Sample((torch.complex(*parts),), name="complex matrix")


def doubled(x: Tensor) -> Tensor:
    """Twice x, in new and packed memory: what most ops here would compute if they were right."""
    return like(x).copy_(x * 2)


def like(x: Tensor) -> Tensor:
    """The right fake kernel of `doubled`."""
    return x.new_empty(x.shape)


_LIBRARIES: dict[str, torch.library.Library] = {}


def library(namespace: str) -> torch.library.Library:
    """A library for a namespace, kept alive here. A module that is imported again gets a new one for the old one."""
    old = _LIBRARIES.pop(namespace, None)
    if old is not None:
        old._destroy()
    return _LIBRARIES.setdefault(namespace, torch.library.Library(namespace, "FRAGMENT"))


def define(
    lib: torch.library.Library,
    name: str,
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any] | None,
    *,
    key: str = "CPU",
) -> str:
    """Define ``name`` with a schema such as ``(Tensor x) -> Tensor``; returns ``ns::name``."""
    lib.define(name + schema)
    lib.impl(name, kernel, key)
    if fake is not None:
        lib._register_fake(name, fake)
    return f"{lib.ns}::{name}"
