"""The fake kernel can be called as the schema says."""

import inspect

from opcheck_suite.registry import check


@check(
    id="registration.fake_signature",
    title="The fake kernel has another signature than the op",
    what=(
        "Compares the parameters of the Python fake kernel with the schema: how many, which are keyword-only, in "
        "which order, with which defaults."
    ),
    why=(
        "register_fake accepts any function. The mistake shows only under torch.compile, as a TypeError that names "
        "neither the op nor the fake kernel, or not at all where two arguments of one type are swapped or a default "
        "differs."
    ),
    fix="Give the fake kernel the parameters of the schema, in its order and with its defaults.",
    docs="https://github.com/pytorch/pytorch/issues/181851",
    tier="static",
    scope="op",
    applies=lambda ctx: None if ctx.info.fake_function is not None else "the op has no fake kernel in Python",
)
def fake_signature(ctx):
    function = ctx.info.fake_function
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        ctx.skip("the fake kernel's signature cannot be read")
    arguments = ctx.info.schema.arguments
    positional = [a for a in arguments if not a.kwarg_only]
    keyword = {a.name: a for a in arguments if a.kwarg_only}
    where = f"{ctx.info.schema}\nfake kernel {function.__qualname__}{signature} in {function.__module__}"
    try:
        bound = signature.bind(*[a.name for a in positional], **{name: name for name in keyword})
    except TypeError as error:
        ctx.fail(f"the fake kernel cannot take the op's arguments: {error}\nschema {where}")
    for parameter, value in bound.arguments.items():
        kind = signature.parameters[parameter].kind
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        _default(ctx, signature.parameters[parameter], next(a for a in arguments if a.name == value), where)
    _order(ctx, signature, positional, where)


def _default(ctx, parameter, argument, where):
    if not argument.has_default_value():
        return
    if parameter.default is inspect.Parameter.empty:
        ctx.fail(f"argument {argument.name!r} has a default in the schema, none in the fake kernel\nschema {where}")
    if not _same(parameter.default, argument.default_value):
        ctx.fail(
            f"argument {argument.name!r} has default {argument.default_value!r} in the schema, "
            f"{parameter.default!r} in the fake kernel\nschema {where}"
        )


def _same(ours, theirs):
    if isinstance(ours, tuple | list) and isinstance(theirs, tuple | list):
        return list(ours) == list(theirs)
    if type(ours).__module__ == "torch" or type(theirs).__module__ == "torch":
        return True  # dtypes, devices and layouts are integers in a schema
    return ours == theirs


def _order(ctx, signature, positional, where):
    names = [p.name for p in signature.parameters.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    expected = [a.name for a in positional]
    if names[: len(expected)] != expected and sorted(names) == sorted(expected):
        ctx.fail(f"the fake kernel takes {', '.join(names)}, the schema {', '.join(expected)}\nschema {where}")
