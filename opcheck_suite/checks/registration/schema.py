"""The registered schema is the one that the function's annotations say."""

from opcheck_suite.registry import check


@check(
    id="registration.schema",
    title="The schema does not fit the function",
    what=(
        "Infers a schema from the annotations of the function behind a custom_op, with torch.library.infer_schema, "
        "and compares it with the registered one: names, types, defaults, keyword-only arguments, returns."
    ),
    why=(
        "The dispatcher converts arguments by the schema, and drops those equal to the schema's default before a "
        "Python kernel sees them: with another default in the function, the op computes with a value that nobody "
        "gave."
    ),
    fix="Leave out schema= and let torch infer it, or make the function's signature say the same.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.infer_schema",
    tier="static",
    scope="op",
    applies=lambda ctx: "the op was not made by torch.library.custom_op" if ctx.info.function is None else None,
)
def schema(ctx):
    import torch

    function = ctx.info.function
    try:
        text = torch.library.infer_schema(function, mutates_args=ctx.info.mutated)
    except (ValueError, TypeError, NameError) as error:
        ctx.skip(f"no schema can be inferred from the function: {str(error).splitlines()[0]}")
    inferred = torch._C.parse_schema(f"x::x{text}")
    registered = ctx.info.schema
    ours, theirs = registered.arguments, inferred.arguments
    if [a.name for a in ours] != [a.name for a in theirs]:
        names = ", ".join(a.name for a in theirs)
        ctx.fail(f"the schema's arguments are {', '.join(a.name for a in ours)}, the function's are {names}")
    weak = []
    for a, b in zip(ours, theirs, strict=True):
        if a.kwarg_only != b.kwarg_only:
            ctx.fail(f"argument {a.name!r} is keyword-only in {'the schema' if a.kwarg_only else 'the function'} alone")
        if a.has_default_value() != b.has_default_value() or a.default_value != b.default_value:
            ctx.fail(f"argument {a.name!r} has {_default(a)} in the schema, {_default(b)} in the function")
        have, want = _spelled(a.real_type), _spelled(b.real_type)
        if have != want:
            if have.replace("int", "SymInt") == want:
                weak.append(a.name)
            else:
                ctx.fail(f"argument {a.name!r} is {have} in the schema, {want} in the function")
    if [str(r.type) for r in registered.returns] != [str(r.type) for r in inferred.returns]:
        ctx.fail(f"the schema returns {_returns(registered)}, the function {_returns(inferred)}")
    if weak:
        names = ", ".join(map(repr, weak))
        ctx.warn(f"argument {names} is int in the schema: a symbolic size given for it is made a constant; use SymInt")


def _spelled(type):
    """A type in words. torch itself calls both an int and a symbolic one int."""
    if type.kind() in ("ListType", "OptionalType"):
        return f"{type.kind().removesuffix('Type')}[{_spelled(type.getElementType())}]"
    return "SymInt" if type.kind() == "SymIntType" else str(type)


def _default(argument):
    return f"default {argument.default_value!r}" if argument.has_default_value() else "no default"


def _returns(schema):
    return f"({', '.join(str(r.type) for r in schema.returns)})"
