"""Strategies for the calls of every conformant reference op, wider than the samples in their specs.

All dtypes that an op takes, sizes of zero and one, 0-d tensors, every layout in memory, optional arguments and numbers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from hypothesis import Phase, settings
from hypothesis import strategies as st

from opcheck_suite import Sample, fakes, ops, specs
from opcheck_suite.inputs import cases
from opcheck_suite.inputs.strategies import (
    bools,
    device_of,
    dtype_of,
    dtypes,
    floats,
    from_schema,
    ints,
    length_of,
    like,
    lists,
    optional,
    sample,
    scalars,
    shapes,
    size_of,
    sizes,
    strings,
    tensors,
)
from reference_ops.native.ops import STABLE_UNAVAILABLE, UNAVAILABLE
from reference_ops.specs import SPECS
from tests.settings import EXAMPLES, PROPERTY

#: For finding the smallest call that a condition holds for.
SMALLEST = settings(PROPERTY, max_examples=500, phases=[Phase.generate, Phase.shrink])

#: For what concerns a single op.
FEWER = settings(PROPERTY, max_examples=EXAMPLES // 5)

FLOATS = dtypes("floating")
WIDE = st.sampled_from([torch.float32, torch.float64])
NUMBERS = dtypes("floating", "complex", "integer", "bool")
CONTINUOUS = dtypes("floating", "complex")
SUMMED = st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64])


def any_tensors(dtype: Any = FLOATS, shape: Any = None, *, least: int = 0, **more: Any) -> Any:
    """Tensors however they lie in memory, of ``least`` dimensions or more, with sizes from zero."""
    shape = shapes(least, 3, min_size=0, max_size=5) if shape is None else shape
    return tensors(shape, dtype, **{"strides": "any", "offset": ints(0, 3)} | more)


def beside(x: str, **changes: Any) -> Any:
    """Tensors like another, laid out in their own way."""
    return like(x, **{"strides": "any", "offset": ints(0, 3)} | changes)


def _written(x: str) -> Any:
    return beside(x, strides="writable")


def _rows(op: str, dtype: Any) -> Any:
    return from_schema(op, x=any_tensors(dtype, least=1))


def _matrices(op: str, x: str, y: str, dtype: Any, **more: Any) -> Any:
    """Two matrices with rows of one length."""
    given = {
        x: any_tensors(dtype, (sizes(0, 5), sizes(0, 5))),
        y: any_tensors(dtype_of(x), (sizes(0, 5), size_of(x, 1)), device=device_of(x)),
    }
    return from_schema(op, **given | more)


_PYTHON: dict[str, Any] = {
    "row_sums": _rows("reference::row_sums", NUMBERS),
    "bias_relu": st.one_of(
        sample(x=any_tensors(), bias=None),
        sample(x=any_tensors(least=1), bias=any_tensors(dtype_of("x"), (size_of("x", -1),))),
    ),
    "weighted_sum": sample(
        tensors=lists(any_tensors(CONTINUOUS), rest=beside), weights=lists(floats(), size=length_of("tensors"))
    ),
    "scaled": sample(x=any_tensors(NUMBERS), factor=scalars()),
    "round_to": sample(
        x=any_tensors(), dtype=FLOATS, device=device_of("x"), rounding=strings("nearest", "down", "up", "zero")
    ),
    "quantise": sample(x=any_tensors(WIDE), step=floats(0.125, 2.0), levels=ints(1, 20), symmetric=bools()),
    "running_total": _rows("reference::running_total", SUMMED),
    "centre_rows": sample(x=any_tensors(CONTINUOUS, shapes(1, 3, max_size=5))),
    "gram": _matrices("reference::gram", "x", "y", CONTINUOUS),
    "accumulate_": sample(total=any_tensors(NUMBERS, strides="writable"), value=beside("total")),
    "difference_into": sample(x=any_tensors(CONTINUOUS), y=beside("x"), out=_written("x")),
    "centre_columns": sample(
        x=any_tensors(FLOATS, (sizes(1, 5), sizes(0, 5))),
        seen=tensors((), torch.int64),
        running_mean=optional(any_tensors(dtype_of("x"), (size_of("x", 1),), strides="writable")),
        momentum=floats(0.0, 1.0),
    ),
    "decay_": sample(tensors=lists(any_tensors(CONTINUOUS, strides="writable")), factor=floats()),
    "cube": sample(x=any_tensors()),
    "cube_backward": sample(grad=any_tensors(), x=beside("grad")),
    "sine": sample(x=any_tensors(st.sampled_from([torch.float32, torch.float64, torch.complex64]))),
    "cosine": sample(x=any_tensors(st.sampled_from([torch.float32, torch.float64, torch.complex64]))),
    "project": _matrices(
        "reference::project", "x", "weight", FLOATS, bias=optional(any_tensors(dtype_of("x"), (size_of("weight"),)))
    ),
    "hashed_rows": sample(table=any_tensors(CONTINUOUS, (sizes(1, 5), sizes(0, 5))), keys=any_tensors(torch.int64)),
    "gate": sample(x=any_tensors(), threshold=beside("x")),
    "square_and_sign": sample(x=any_tensors()),
    "tone_curve": sample(
        x=any_tensors(),
        knots=st.lists(floats(), min_size=1, max_size=4, unique=True).map(sorted),
        levels=lists(floats(), size=length_of("knots")),
    ),
    "limit_peak": sample(x=any_tensors()),
    "exact_sum": sample(x=any_tensors()),
    "checksum": sample(x=any_tensors(NUMBERS)),
    "nonzero_values": sample(x=any_tensors(NUMBERS)),
    "jitter": sample(x=any_tensors(), scale=floats(0.0, 2.0)),
    "triangle": sample(length=ints(0, 9), device=torch.device("cpu"), dtype=FLOATS),
    "soft_limit": sample(x=any_tensors(), bound=floats(0.25, 4.0)),
    "shift.Scalar": sample(x=any_tensors(NUMBERS), by=scalars()),
    "shift.Tensor": sample(x=any_tensors(NUMBERS), by=beside("x")),
    "gated": sample(x=any_tensors(), y=beside("x")),
    "gated_opaque": sample(x=any_tensors(), y=beside("x")),
}

_NATIVE: dict[str, Any] = {
    "muladd": sample(a=any_tensors(WIDE), b=beside("a"), c=floats()),
    "scale_": sample(x=any_tensors(strides="writable"), s=floats()),
    "plus": sample(a=any_tensors(WIDE), b=beside("a")),
    "plus.out": sample(a=any_tensors(WIDE), b=beside("a"), out=_written("a")),
    "plus_into": sample(a=any_tensors(WIDE), b=beside("a"), out=_written("a")),
    "weighted_sum": sample(xs=lists(any_tensors(WIDE), rest=beside), weights=lists(floats(), size=length_of("xs"))),
    "tile_rows": sample(x=any_tensors(WIDE, shapes(1, 3, max_size=5)), rows=ints(0, 9)),
    "row_norms": sample(x=any_tensors(WIDE, least=1)),
    "softclip": sample(x=any_tensors(WIDE), limit=floats(0.25, 4.0)),
    "running_max": sample(x=any_tensors(st.sampled_from([torch.float32, torch.float64, torch.int64]), least=1)),
}

_STABLE: dict[str, Any] = {"axpy": sample(x=any_tensors(WIDE), y=beside("x"), a=floats())}

#: Name of an op -> the strategy for its calls.
CALLS: dict[str, Any] = {f"reference::{name}": calls for name, calls in _PYTHON.items()}
if not UNAVAILABLE:
    CALLS |= {f"reference_cpp::{name}": calls for name, calls in _NATIVE.items()}
if not STABLE_UNAVAILABLE:
    CALLS |= {f"reference_stable::{name}": calls for name, calls in _STABLE.items()}

ENTRIES = {entry.name: entry for entry in specs.entries(SPECS) if entry.info is not None}


#: For calls with the sizes that they have: making a mode costs as much as a call.
MODE = fakes.new_mode()


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of an op, as a failing example shows it."""

    case: cases.Case

    @property
    def info(self) -> ops.OpInfo:
        """What is known about the op."""
        return self.case.info

    @property
    def op(self) -> Any:
        """The operator."""
        return self.case.info.op

    def __repr__(self) -> str:
        return self.case.describe()


def call(op: Any, given: Sample) -> Call:
    """A sample of an op as a call."""
    return Call(cases.of_sample(ops.info(op), dataclasses.replace(given, name="drawn"), "cpu"))


def calls(*names: str) -> Any:
    """Calls of some ops; without names of all reference ops."""
    return st.sampled_from(names or sorted(CALLS)).flatmap(lambda name: CALLS[name].map(lambda s: call(name, s)))
