"""Strategies for whole calls, from the schema of an op."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from opcheck_suite import ops
from opcheck_suite.inputs.drawing import arranged
from opcheck_suite.inputs.strategies import plain, relations
from opcheck_suite.inputs.strategies.calls import draw_in, order_of
from opcheck_suite.inputs.strategies.parts import Draw, LeftOut, needed, related, resolve
from opcheck_suite.inputs.strategies.tensors import like, tensors
from opcheck_suite.model import Sample
from opcheck_suite.registry import UsageError, did_you_mean


def from_schema(op: Any, /, **overrides: Any) -> SearchStrategy[Sample]:
    """Calls that fit the schema of an op, which is a name or an object as for `OpSpec`.

    The first tensor is a float32 tensor of `shapes()`; other tensors, also those in lists, have its shape, dtype and
    device. Arguments with a default are left out or drawn. Where an argument is called what is usual for a kind of
    argument (``dim``, ``index``, ``offsets``, ``mask``, ``eps``, ``p``), it is drawn as one.

    What a schema does not tell, ``overrides`` do: parts by the name of the argument, as for `sample`.
    ``from_schema("ns::gather", x=tensors(dtype=dtypes()), index=index_into("x", dim="dim", shape=shape_of("x")))``

    Raises UsageError for an op that does not exist, an argument that it does not have, or a type without a strategy.
    """
    info = ops.info(op)
    if not info.is_operator:
        raise UsageError(f"from_schema needs an operator, {info.name} is a plain function")
    arguments = info.schema.arguments
    names = [a.name for a in arguments]
    for name in overrides:
        if name not in names:
            raise UsageError(f"{info.name} has no argument {name!r}{did_you_mean(name, names)}: {info.schema}")
    free = [a.name for a in arguments if _kind(a) == "Tensor" and not _usual(a) and not needed(overrides.get(a.name))]
    first = next(iter(free), None)
    parts = {a.name: overrides[a.name] if a.name in overrides else _part(info, a, first, names) for a in arguments}
    order = order_of(parts, f"from_schema({info.name})")

    @st.composite
    def from_schema(draw: Draw) -> Sample:
        known = draw_in(order, parts, draw)
        return arranged(info, {name: value for name, value in known.items() if not isinstance(value, LeftOut)})

    return from_schema()


@dataclasses.dataclass(frozen=True)
class _Usual:
    """An argument that is known by its name: the pattern of the name, the type, and how it is drawn."""

    name: str
    kind: str
    make: Callable[[str, list[str]], Any]
    """``(first tensor, names of all arguments) -> part``"""


def _along(names: list[str]) -> Any:
    return next((name for name in ("dim", "axis") if name in names), 0)


_USUAL = (
    _Usual("dim|axis", "int", lambda first, _: relations.dim_of(first)),
    _Usual("dims|axes", "List[int]", lambda first, _: relations.dims_of(first, min_size=1)),
    _Usual("index|indices|idx", "Tensor", lambda first, names: relations.index_into(first, _along(names))),
    _Usual("offsets", "Tensor", lambda first, _: relations.sorted_offsets(first)),
    _Usual("mask", "Tensor", lambda first, _: like(first, dtype=torch.bool)),
    _Usual("eps|epsilon", "float", lambda *_: st.sampled_from([1e-5, 1e-3, 1e-6])),
    _Usual("p|dropout|dropout_p|momentum", "float", lambda *_: plain.floats(0.0, 1.0)),
)


def _kind(argument: Any) -> str:
    """The type of an argument, such as ``Optional[List[int]]``. A symbolic integer takes integers."""
    return str(argument.real_type).replace("SymInt", "int")


def _usual(argument: Any) -> _Usual | None:
    kind = _kind(argument).removeprefix("Optional[")
    for one in _USUAL:
        if re.fullmatch(one.name, argument.name) and kind.startswith(one.kind):
            return one
    return None


def _part(info: ops.OpInfo, argument: Any, first: str | None, names: list[str]) -> Any:
    """How an argument is drawn of which only the schema tells."""
    usual = _usual(argument) if first is not None else None
    kind = _kind(argument)
    if usual is not None and first is not None:
        part = usual.make(first, names)
        part = plain.optional(part) if kind.startswith("Optional[") else part
    else:
        related = None if argument.name == first else first
        part = _of_type(kind, related, argument.N)
    if part is None:
        raise UsageError(
            f"from_schema({info.name}): there is no strategy for argument {argument.name!r} of type {kind}; "
            f"give one as from_schema(op, {argument.name}=...)"
        )
    return _perhaps(part, argument.default_value) if argument.has_default_value() else part


def _perhaps(part: Any, default: Any) -> Any:
    def pick(draw: Draw, known: Mapping[str, Any]) -> Any:
        return resolve(part, draw, known) if draw(st.booleans()) else LeftOut(default)

    return related(pick, part, text=f"{part!r} or left out")


def _of_type(kind: str, first: str | None, length: int | None) -> Any:
    """The strategy for a schema type, such as ``Optional[List[Tensor]]``; None where there is none."""
    if inner := re.fullmatch(r"Optional\[(.*)\]", kind):
        part = _of_type(inner[1], first, length)
        return part if part is None else plain.optional(part)
    if inner := re.fullmatch(r"List\[(.*)\]", kind):
        part = _of_type(inner[1], first, None)
        rest = like if inner[1] == "Tensor" and first is None else None
        return part if part is None else plain.lists(part, size=length, rest=rest)
    if kind == "Tensor":
        return tensors() if first is None else like(first)
    if kind == "Device" and first is not None:
        return relations.device_of(first)
    if kind == "MemoryFormat" and first is not None:
        return plain.memory_formats(first)
    if kind == "Generator" and first is not None:
        return plain.generators(relations.device_of(first))
    make = _TYPES.get(kind)
    return None if make is None else make()


_TYPES: dict[str, Callable[[], Any]] = {
    "int": plain.ints,
    "float": plain.floats,
    "bool": plain.bools,
    "number": plain.scalars,
    "complex": lambda: st.builds(complex, plain.floats(), plain.floats()),
    "str": plain.strings,
    "ScalarType": plain.dtypes,
    "Device": plain.devices,
    "Layout": lambda: st.just(torch.strided),
    "MemoryFormat": plain.memory_formats,
    "Generator": plain.generators,
}
