"""An in-place op does not return its argument."""

from opcheck_suite.registry import check


@check(
    id="schema.functional",
    title="The op returns the argument that it writes",
    what=(
        "Looks for outputs that the schema declares as aliases of a written argument, other than those of out= "
        "overloads and of ops tagged as in-place."
    ),
    why="torch.compile does not functionalize such an op: every compiled call of it raises.",
    fix="Return nothing: f_(Tensor(a!) x) -> ().",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    tier="static",
    scope="op",
    applies=lambda ctx: "registered by PyTorch itself" if ctx.info.from_torch else None,
)
def functional(ctx):
    schema = ctx.info.schema
    if {"inplace", "out"} & set(ctx.info.tags) or any(a.is_out for a in schema.arguments):
        return
    written = {
        str(s) for a in schema.arguments if a.alias_info and a.alias_info.is_write for s in a.alias_info.before_set
    }
    for n, part in enumerate(schema.returns):
        if part.alias_info and written & {str(s) for s in part.alias_info.before_set}:
            ctx.fail(f"output {n} is declared as the argument that the op writes: {schema}")
