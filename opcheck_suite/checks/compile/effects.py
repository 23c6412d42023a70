"""What an op does besides returning results happens in compiled code, as often and in the same order."""

from opcheck_suite.registry import check


@check(
    id="compile.effects",
    title="A compiler drops, reorders or hides what the op does",
    what=(
        "For ops that write to arguments or return nothing. Calls the op twice, reads what it writes before, between "
        "and after, also through a larger tensor that the argument is a part of, and compiles that with Inductor. "
        "Reads must give what they give in eager. The op must be called as often, and where it writes no argument on "
        "the same values in the same order."
    ),
    why=(
        "The compiler knows what an op does from its schema and its registered effect alone. What they do not say is "
        "dropped, moved, or done to a copy."
    ),
    fix=(
        "Declare what is written in mutates_args. Register an effect for an op that logs, prints or sends "
        "(torch._higher_order_ops.effects._register_effectful_op). Leave functionalization to torch."
    ),
    docs="https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html",
    tier="standard",
    scope="signature",
    applies=lambda ctx: (
        ctx.not_functional()
        or (
            "the op is transparent to the compiler: see registration.composite"
            if ctx.info.transparent
            else None
            if ctx.info.mutated or not ctx.info.schema.returns or ctx.info.effect
            else "the op returns its results, writes nothing, and has no registered effect"
        )
    ),
)
def effects(ctx, case):
    from collections import Counter

    from opcheck_suite import compilepairs, programs

    compilepairs.ready(ctx, case)
    if compilepairs.graph(ctx, case).breaks:
        ctx.not_exercised("the call breaks the graph: see compile.graph_breaks")
    program = programs.eager(ctx, case, "effects")
    if not program.situations:
        ctx.skip("the op can be called neither twice nor on parts of a tensor with these arguments")
    got = programs.compiled(ctx, case, "effects", "inductor")
    if got.error is None:
        expected = programs.recorded(ctx, case, program)
        if len(got.calls) != len(expected):
            ctx.fail(f"the op is called {len(expected)} times in eager, {len(got.calls)} times in the code of Inductor")
        if ctx.deterministic and not ctx.info.mutated:
            for n, (mine, theirs) in enumerate(zip(got.calls, expected, strict=True)):
                if text := ctx.compare(mine.values, theirs.values, names="tensor", exact=True):
                    moved = Counter(c.key for c in got.calls) == Counter(c.key for c in expected)
                    order = "in another order or " if moved else ""
                    ctx.fail(f"compiled calls are made {order}on other values: call {n + 1} of {len(expected)}: {text}")
    if ctx.deterministic and (text := programs.difference(ctx, case, "effects", "inductor")):
        ctx.fail(text)
