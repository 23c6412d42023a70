"""Faulty ops in C++ (``csrc/broken``): their fakes, which are right, and their specs.

`FAULTS` says what is wrong with each. Where the library cannot be built, the specs say why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from opcheck_suite.model import OpSpec, Sample
from reference_ops.native._build import missing
from reference_ops.python.data import normal

#: As for ``OpSpec(unavailable=...)``: empty, or why the ops of ``broken_cpp`` are not there.
UNAVAILABLE = missing("broken")

#: Op -> its one fault. All of them would return a new contiguous tensor of x * 2 if they were right.
FAULTS: dict[str, str] = {
    "broken_cpp::linear_walk": "reads data_ptr linearly and ignores strides",
    "broken_cpp::segfault": "writes through a null pointer",
    "broken_cpp::abort": "calls abort()",
    "broken_cpp::undeclared_write": "writes one element of its input, which the schema does not say",
    "broken_cpp::returns_input": "returns its input, which the schema says is a new tensor",
    "broken_cpp::meta_shape": "its C++ Meta kernel says a wrong shape",
    "broken_cpp::heap_overflow": "writes far past the end of its result",
    "broken_cpp::stack_overflow": "recurses without end",
    "broken_cpp::composite": "is registered as CompositeImplicitAutograd where an opaque op is meant",
    "broken_cpp::exits": "leaves the process with exit status 0",
    "broken_cpp::shared_scratch": "computes in memory that all calls share, also when they run at once",
    "broken_cpp::leaks": "allocates a workspace in every call and does not free it",
}


def _float_or_double_fake(op: str) -> Callable[[Tensor], Tensor]:
    def fake(x: Tensor) -> Tensor:
        torch._check(
            x.dtype in (torch.float32, torch.float64), lambda: f"{op}: x must be float32 or float64, got {x.dtype}"
        )
        return x.new_empty(x.shape)

    return fake


def _same_shape_fake(x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def _returns_input_fake(x: Tensor) -> Tensor:
    # Right by the schema: a new tensor. The strides are those of x, so that only the aliasing is at fault.
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)


_FAKES: dict[str, Callable[[Tensor], Tensor]] = {
    # meta_shape has its fake in C++, composite needs none
    "broken_cpp::linear_walk": _float_or_double_fake("linear_walk"),
    "broken_cpp::undeclared_write": _float_or_double_fake("undeclared_write"),
    "broken_cpp::returns_input": _returns_input_fake,
    "broken_cpp::segfault": _same_shape_fake,
    "broken_cpp::abort": _same_shape_fake,
    "broken_cpp::heap_overflow": _same_shape_fake,
    "broken_cpp::stack_overflow": _same_shape_fake,
    "broken_cpp::exits": _same_shape_fake,
    "broken_cpp::shared_scratch": _float_or_double_fake("shared_scratch"),
    "broken_cpp::leaks": _same_shape_fake,
}

if not UNAVAILABLE:
    for _op, _fake in _FAKES.items():
        torch.library.register_fake(_op, _fake)


def _samples(device: str, dtype: torch.dtype | None) -> Iterator[Sample]:
    yield Sample((normal(3, 4, device=device, dtype=dtype),), name="matrix")


def _reference(x: Tensor) -> Tensor:
    return (x * 2).contiguous()


SPECS: list[OpSpec] = [
    OpSpec(
        op,
        samples=_samples,
        reference=(lambda x: x.clone()) if op == "broken_cpp::returns_input" else _reference,
        devices=("cpu",),
        dtypes=(torch.float32,),
        differentiable=False,
        opaque=True,
        unavailable=UNAVAILABLE,
        about=f"planted fault: {fault}",
    )
    for op, fault in FAULTS.items()
]
