"""What it costs that the compiler cannot look inside the op. Figures, not a judgement."""

from opcheck_suite.registry import check


@check(
    id="compile.cost",
    title="What opacity costs",
    what=(
        "Counts kernels, buffers and their bytes in what Inductor makes of the op between two pointwise operations, "
        "and of the reference in its place. For an op that writes to arguments, counts the copies that Inductor makes "
        "so that others do not see the write, when the op is called on an argument of the function, on an "
        "intermediate, and on one that is read afterwards. Never fails; figures are for the CPU."
    ),
    why=(
        "The compiler fuses nothing with an opaque op: what comes before must be written to memory for it. Where a "
        "plain function compiles to fewer kernels, the op may be slower than no op."
    ),
    fix="Nothing is wrong. Compare the figures before wrapping a function that torch.compile can trace.",
    docs="https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html",
    tier="full",
    scope="signature",
    severity="pass",
    applies=lambda ctx: (
        ctx.not_functional()
        or (
            "the op is transparent to the compiler: see registration.composite"
            if ctx.info.transparent
            else "figures are counted in what Inductor generates for the CPU"
            if ctx.device != "cpu"
            else None
        )
    ),
)
def cost(ctx, case):
    from opcheck_suite import compilepairs, costs

    compilepairs.ready(ctx, case)
    if compilepairs.graph(ctx, case).breaks:
        ctx.not_exercised("the call breaks the graph: see compile.graph_breaks")
    notes = []
    if ctx.spec.reference is not None:
        opaque = costs.between(ctx, case, ctx.info.op)
        inlined = costs.between(ctx, case, ctx.spec.reference)
        notes += [f"opaque   {opaque}", f"inlined  {inlined}"]
    if ctx.info.mutated:
        notes += [f"the op, called {where}: {copies}" for where, copies in costs.copies(ctx, case).items()]
    if not notes:
        ctx.skip("the spec has no reference to compare with, and the op writes nothing")
    ctx.note("\n".join(notes))
