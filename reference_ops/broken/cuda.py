"""Kernels for CUDA with one fault each, as one finds them: ``opcheck run reference_ops.broken.cuda --device cuda,cpu``.

The kernels are in ``csrc/broken/cuda``. What the table says of a check is what is expected of it on a GPU: none of this
has been run on one. Everything but the kernels is here, and is right, so that the ops are registered on any machine,
with their fakes. Without a CUDA build of torch and nvcc, the specs say that CUDA is unavailable, and why. The module is
no part of the table of all faults: those are looked at on the CPU.

What needs more than one GPU, or much memory, is said beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from opcheck_suite import registry
from opcheck_suite.model import OpSpec, Sample
from reference_ops.broken import fault
from reference_ops.broken.fault import Fault, define, library, matrix
from reference_ops.native._build import missing
from reference_ops.python.data import normal

#: As for ``OpSpec(unavailable=...)``: empty, or why the CUDA kernels are not there.
UNAVAILABLE = missing("broken_cuda")

_BOTH = ("cpu", "cuda")
_FLOAT = (torch.float32,)


def _matrix_and_integer(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype), 7), name="matrix and integer")


def _many(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(40, 50, device=device, dtype=dtype),), name="more than a block has threads")


def _terms(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(512, 64, device=device, dtype=dtype).abs_(),), name="terms of many blocks")


def _like(x: Tensor) -> Tensor:
    torch._check(x.dtype == torch.float32, lambda: f"x must be float32, got {x.dtype}")
    return fault.like(x)


def _doubled(x: Tensor) -> Tensor:
    return _like(x).copy_(x * 2)


def _shifted(x: Tensor, by: int) -> Tensor:
    return _like(x).copy_(x + by)


def _shifted_like(x: Tensor, by: int) -> Tensor:
    return _like(x)


def _columns(x: Tensor) -> Tensor:
    return _columns_like(x).copy_(x.sum(0))


def _columns_like(x: Tensor) -> Tensor:
    torch._check(x.dim() > 0, lambda: "x must have at least one dimension, got a 0-d tensor")
    return _like(x).new_empty(x.shape[1:])


_LIBRARY = library("broken_cuda")

for _name in (
    "doubled",
    "default_stream",
    "no_guard",
    "narrow_index",
    "unchecked_launch",
    "waits_for_kernel",
    "tail_unwritten",
    "aligned_only",
    "beyond_the_end",
):
    define(_LIBRARY, _name, "(Tensor x) -> Tensor", _doubled, _like)
define(_LIBRARY, "narrow_number", "(Tensor x, int by) -> Tensor", _shifted, _shifted_like)
define(_LIBRARY, "any_order", "(Tensor x) -> Tensor", _columns, _columns_like)


def _spec(name: str, about: str, **claims: Any) -> OpSpec:
    usual = {"samples": matrix, "reference": _doubled, "devices": _BOTH, "dtypes": _FLOAT, "unavailable": UNAVAILABLE}
    return OpSpec(f"broken_cuda::{name}", about=about, **{**usual, **claims})


def _planted(name: str, about: str, check: str, outcome: str = "fail", **claims: Any) -> Fault:
    also = claims.pop("also", {})
    return Fault(_spec(name, f"planted fault: {about}", **claims), check, outcome, also)


FAULTS: list[Fault] = [
    # While another stream is captured it runs at once, and is not in the graph.
    _planted(
        "default_stream",
        "the kernel is queued on the default stream",
        "device.stream",
        also={"device.capture": "fail"},
    ),
    # Needs two GPUs. Where these reach each other's memory the kernel runs, on a stream that does not wait for the
    # arguments: then it is `fail`.
    _planted("no_guard", "the kernel is launched on the device that is current", "device.guard", "crash"),
    # Needs --large and 16 GiB: two float32 tensors of more than 2^31 elements.
    _planted("narrow_index", "elements are counted in 32 bits", "values.large"),
    _planted(
        "narrow_number", "a number is cut to 32 bits", "values.wide", samples=_matrix_and_integer, reference=_shifted
    ),
    # The error of a launch stays with the thread until somebody asks for it: the suite does after every call.
    _planted("unchecked_launch", "nobody asks whether the kernel was launched", "values.runs", samples=_many),
    _planted("waits_for_kernel", "the host waits for the kernel", "device.capture", "warn"),
    _planted("tail_unwritten", "whole blocks of four are written, and no rest", "values.unwritten", reference=None),
    # An address that is not a multiple of 16 is an error that comes late, and the device is lost.
    _planted("aligned_only", "addresses are taken to be aligned to 16 bytes", "values.noncontiguous", "crash"),
    _planted("beyond_the_end", "the kernel reads far beyond its argument", "values.runs", "crash"),
    _planted(
        "any_order",
        "terms are added by atomics, and the spec claims that the op is deterministic",
        "device.deterministic",
        samples=_terms,
        reference=_columns,
        deterministic=True,
    ),
]

_GOOD = _spec("doubled", "a CUDA kernel that is right", deterministic=True)

#: Check id -> an op that passes it, having run on the device.
GOOD: dict[str, OpSpec] = {one.id: _GOOD for one in registry.all_checks() if one.family == "device"}

SPECS = [_GOOD, *(fault.spec for fault in FAULTS)]
