"""The properties of `torch.library.infer_schema`: each says in words what happens to a subject.

The words before the colon tell the kind, the others what was seen.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import torch

from tests.rules.functions import Function
from tests.rules.oracle import ORACLE, Oracle
from tests.rules.subjects import Call, Spoilt

HOLDS = "holds"
_number = itertools.count()


def infer(function: Function, op_name: str | None = None, built: Any = None) -> str:
    """What torch infers; ``built``: the function, if it has been made."""
    tags = {"tags": getattr(torch.Tag, function.tag)} if function.tag else {}
    built = function.build() if built is None else built
    return torch.library.infer_schema(built, mutates_args=function.given(), op_name=op_name, **tags)


def inferred(function: Function, oracle: Oracle = ORACLE) -> str:
    """The inferred schema is the oracle's."""
    try:
        schema = infer(function, function.op_name)
    except ValueError as error:
        return f"refused: {_said(error)}"
    except Exception as error:
        return f"raised: {error!r}"
    expected = oracle.schema(function)
    return HOLDS if schema == expected else f"inferred: {schema}, not {expected}"


def parsed(function: Function, oracle: Oracle = ORACLE) -> str:
    """Torch's parser reads the inferred schema as it is meant, and reads again what it prints."""
    text = infer(function)
    try:
        schema = torch._C.parse_schema(f"probe::probe{text}")
    except Exception as error:
        return f"not parsed: {text}: {error}"
    if wrong := _parsed_otherwise(schema, function, oracle):
        return wrong
    printed = str(schema)
    try:
        again = torch._C.parse_schema(printed)
    except Exception as error:
        return f"not parsed as printed: {printed}: {error}"
    if wrong := _parsed_otherwise(again, function, oracle):
        return f"printed, {wrong}"
    return HOLDS if str(again) == printed else f"printed another way: {printed}, then {again}"


def _parsed_otherwise(schema: Any, function: Function, oracle: Oracle) -> str | None:
    arguments, wanted = schema.arguments, function.parameters
    if [a.name for a in arguments] != [p.name for p in wanted]:
        return f"other arguments: {schema}"
    for argument, parameter in zip(arguments, wanted, strict=True):
        if str(argument.real_type) != oracle.parsed(parameter):
            return f"another type: {argument.real_type}, not {oracle.parsed(parameter)}"
        if argument.kwarg_only != (parameter.kind == "keyword"):
            return f"another kind: {schema}"
        if argument.has_default_value() != (parameter.default is not None):
            return f"a default too many or too few: {schema}"
        if not same(argument.default_value, default := oracle.parsed_default(parameter)):
            return f"another default: {argument.default_value!r}, not {default!r}"
        alias = argument.alias_info
        if (alias is not None and alias.is_write) != oracle.mutated(function, parameter):
            return f"written or not: {schema}"
    if (types := [str(r.real_type) for r in schema.returns]) != oracle.parsed_returns(function):
        return f"other results: {types}, not {oracle.parsed_returns(function)}"
    aliases = [alias for r in schema.returns if (alias := r.alias_info) is not None]
    if [alias.before_set for alias in aliases] != [{f"a{n}"} for n in oracle.aliases(function)]:
        return f"other aliases: {schema}"
    return None


def taken(call: Call, oracle: Oracle = ORACLE) -> str:
    """An op that is made of a function takes what the function takes, hands it on, and gives back what it returns."""
    received: dict[str, Any] = {}
    function = call.function.build(received, call.result)
    name = f"op{next(_number)}"
    library = None
    try:
        try:
            if call.how == "custom_op":
                op = torch.library.custom_op(f"suite_inferred::{name}", function, mutates_args=call.function.given())
                library = op._lib
            else:
                library = torch.library.Library("suite_inferred", "FRAGMENT")
                library.define(infer(call.function, name, function))
                library.impl(name, function, "CompositeExplicitAutograd")
                op = getattr(torch.ops.suite_inferred, name)
        except Exception as error:
            return f"not defined: {error}"
        try:
            returned = op(*call.args, **call.kwargs)
        except Exception as error:
            return f"not called: {error}"
    finally:
        if library is not None:
            library._destroy()
    for parameter, value in zip(call.function.parameters, call.bound().values(), strict=True):
        got = received[parameter.name]
        # a schema has 0.0 where a function has 0 as the default of a float
        converted = parameter.meaning == "float" and {type(got), type(value)} == {int, float} and got == value
        if not (converted or same(got, value)):
            return f"received otherwise: {parameter.name} is {got!r}, not {value!r}"
    return HOLDS if same(returned, call.result) else f"returned otherwise: {returned!r}, not {call.result!r}"


def refused(spoilt: Spoilt, oracle: Oracle = ORACLE) -> str:
    """What cannot be in a schema is refused with a ValueError that names it."""
    try:
        schema = infer(spoilt.function)
    except ValueError as error:
        said = _said(error)
        return HOLDS if re.search(rf"\b{spoilt.named}\b", said) else f"not named: {said}"
    except Exception as error:
        return f"raised: {error!r}"
    return f"accepted: {schema}"


def _said(error: ValueError) -> str:
    """The message without the signature at its end, where every name is."""
    return str(error).partition("Got func with signature")[0].partition("The valid types are")[0]


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in type and value; a tuple is as good as a list."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, (list, tuple)):
        alike = isinstance(other, (list, tuple)) and len(one) == len(other)
        return alike and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other) or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and one == other


PROPERTIES = {"inferred": inferred, "parsed": parsed, "taken": taken, "refused": refused}
