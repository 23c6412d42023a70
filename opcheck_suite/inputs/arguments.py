"""Argument variants: other values for arguments that are no tensors, and optional arguments given or left out.

Integers are left alone: they may be sizes or positions, whose range the schema does not tell.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator
from typing import Any

import torch

from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.inputs.variants import variant

_NEUTRAL = (0.0, 1.0)


@variant("arguments")
def _flags(case: Case) -> Iterator[Case]:
    """Booleans turned round, and numbers at which many formulas have a short cut."""
    given = [name for name, _, kind in _others(case, tensors_too=True) if "Tensor" in kind]
    for name, value, kind in _others(case):
        if kind == "bool":
            made = _with(case, name, not value)
            yield dataclasses.replace(made, uncertain=any(_speaks_of(name, other) for other in given))
        elif kind == "float" and isinstance(value, float | int):
            for neutral in _NEUTRAL:
                if value != neutral:
                    yield _with(case, name, neutral)


@variant("arguments")
def _optional(case: Case) -> Iterator[Case]:
    """Optional arguments left out one by one, and tensors given for those that are absent."""
    true = [name for name, value, _ in _others(case) if value is True]
    for name, value, kind in _others(case, tensors_too=True):
        if kind.startswith("Optional[") and value is not None:
            made = _with(case, name, None)
            yield dataclasses.replace(made, uncertain=any(_speaks_of(flag, name) for flag in true))
        elif kind == "Optional[Tensor]" and value is None:
            donor = next((t for _, t in case.leaves() if tensors.strided(t) and t.is_floating_point()), None)
            if donor is not None:
                made = _with(case, name, donor.detach().clone(memory_format=torch.contiguous_format), shown="given")
                yield dataclasses.replace(
                    made, uncertain=True
                )  # whether it is of the right size and dtype is not known


def _speaks_of(flag: str, name: str) -> bool:
    """Whether a flag's name has an argument's in it, as ``has_bias`` and ``compute_bias_grad`` have ``bias``: what it
    says must be true of the argument, or of the gradients that are wanted.
    """
    return f"_{name}_" in f"_{flag}_"


@variant("arguments")
def _dtypes(case: Case) -> Iterator[Case]:
    """Another floating-point dtype for arguments that are one, or may be."""
    for name, value, kind in _others(case):
        floating = isinstance(value, torch.dtype) and value.is_floating_point  # a default is a number in the schema
        if kind in ("ScalarType", "Optional[ScalarType]") and (value is None or floating):
            yield _with(case, name, torch.float32 if value == torch.float64 else torch.float64)


_DIMENSIONS = ("dim", "dims", "axis", "axes")


@variant("arguments")
def _from_the_end(case: Case) -> Iterator[Case]:
    """Dimensions, told by the argument's name, counted from the end: the same call in all of torch."""
    ranks = {t.dim() for _, t in case.leaves()}
    if len(ranks) != 1:
        return
    rank = ranks.pop()
    for name, value, _ in _others(case):
        items = value if isinstance(value, list | tuple) else [value]
        if name not in _DIMENSIONS or not items or not all(type(v) is int and 0 <= v < rank for v in items):
            continue
        turned = [v - rank for v in items]
        yield _with(case, name, turned if isinstance(value, list | tuple) else turned[0])
        if turned[0] != -1 and not isinstance(value, list | tuple):
            yield _with(case, name, -1)


@variant("arguments")
def _words(case: Case) -> Iterator[Case]:
    """For a string, the words that the op's Python function compares it with or looks up."""
    for name, value, kind in _others(case):
        if kind == "str":
            for word in _constants(case.info.function):
                if word != value:
                    yield _with(case, name, word)


@variant("arguments")
def _lists(case: Case) -> Iterator[Case]:
    """Lists of tensors cut to their first member."""
    for name, value in case.bound().items():
        if isinstance(value, list | tuple) and len(value) > 1 and all(isinstance(v, torch.Tensor) for v in value):
            others = [v for n, v in case.bound().items() if n != name and isinstance(v, list | tuple)]
            if not others:  # lists side by side have one length
                yield _with(case, name, type(value)(value[:1]), shown="one member")


def _with(case: Case, name: str, value: Any, *, shown: str = "") -> Case:
    bound = case.bound()
    text = f"{name}: {shown}" if shown else f"{name}={value!r}"
    if name in bound:
        return case.replace({name: value}, variant=text, group="arguments")
    changed = case.replace({}, variant=text, group="arguments")
    changed.kwargs[name] = value
    return changed


def _others(case: Case, *, tensors_too: bool = False) -> Iterator[tuple[str, Any, str]]:
    """Name, value and type of the arguments that are no tensors; those not given have their default."""
    if not case.info.is_operator:
        return
    bound = case.bound()
    for argument in case.info.schema.arguments:
        kind = str(argument.real_type)
        if "Tensor" in kind and not tensors_too:
            continue
        if argument.name in bound or argument.has_default_value():
            yield argument.name, bound.get(argument.name, argument.default_value), kind


def _constants(function: Any) -> list[str]:
    """The identifier-like strings among the constants of a Python function and of the functions it names."""
    found: dict[str, None] = {}
    queue: list[Any] = [getattr(function, "__code__", None)]
    for code in queue:
        if isinstance(code, types.CodeType):
            queue.extend(code.co_consts)
        elif isinstance(code, str) and code.isidentifier() and len(code) <= 24:
            found[code] = None
        elif isinstance(code, tuple | frozenset):
            queue.extend(code)
    return list(found)[:6]
