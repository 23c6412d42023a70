"""Whether a Python function can be called as a schema says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from opcheck_suite.context import Context


def compare(ctx: Context, function: Callable[..., Any], what: str, *, without: Collection[str] = ()) -> None:
    """End the check where the parameters of ``function`` (the op's ``what``) do not fit the op's schema. Those
    in ``without`` do not come from the call, as the object of a method does not.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        ctx.skip(f"the signature of the {what} cannot be read")
    signature = signature.replace(parameters=[p for p in signature.parameters.values() if p.name not in without])
    arguments = ctx.info.schema.arguments
    positional = [a for a in arguments if not a.kwarg_only]
    keyword = {a.name: a for a in arguments if a.kwarg_only}
    where = f"schema  {ctx.info.schema}\n{what} {function.__qualname__}{signature} in {function.__module__}"
    try:
        bound = signature.bind(*[a.name for a in positional], **{name: name for name in keyword})
    except TypeError as error:
        ctx.fail(f"the {what} cannot take the op's arguments: {error}\n{where}")
    for parameter, value in bound.arguments.items():
        kind = signature.parameters[parameter].kind
        if kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            argument = next(a for a in arguments if a.name == value)
            if text := _default(signature.parameters[parameter], argument, what):
                ctx.fail(f"{text}\n{where}")
    names = [p.name for p in signature.parameters.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    expected = [a.name for a in positional]
    if names[: len(expected)] != expected and sorted(names) == sorted(expected):
        ctx.fail(f"the {what} takes {', '.join(names)}, the schema {', '.join(expected)}\n{where}")


def _default(parameter: inspect.Parameter, argument: Any, what: str) -> str | None:
    if not argument.has_default_value():
        return None
    if parameter.default is inspect.Parameter.empty:
        return f"argument {argument.name!r} has a default in the schema, none in the {what}"
    if not _same(parameter.default, argument.default_value):
        values = f"{argument.default_value!r} in the schema, {parameter.default!r} in the {what}"
        return f"argument {argument.name!r} has default {values}"
    return None


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, tuple | list) and isinstance(theirs, tuple | list):
        return list(ours) == list(theirs)
    if type(ours).__module__ == "torch" or type(theirs).__module__ == "torch":
        return True  # dtypes, devices and layouts are integers in a schema
    return bool(ours == theirs)
