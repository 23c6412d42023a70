"""The reason for which the op exists: the plain function breaks the graph."""

from opcheck_suite.registry import check


@check(
    id="compile.wrapping",
    title="The plain function does not break the graph",
    what=(
        "Compiles the function that the spec gives as unwrapped, and the op: the function must break the graph or "
        "leave a frame to eager, and the op must not."
    ),
    why="An op that wraps a function which torch.compile can trace only keeps the compiler from optimising it.",
    fix="Remove unwrapped from the spec, or the op from the library.",
    docs="https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html",
    tier="standard",
    scope="signature",
    severity="warn",
    applies=lambda ctx: "the spec names no unwrapped function" if ctx.spec.unwrapped is None else None,
)
def wrapping(ctx, case):
    from opcheck_suite import compilepairs, compiling

    compilepairs.ready(ctx, case)
    args, kwargs = case.inputs()
    with ctx.seeded():
        before = compiling.trace(ctx.spec.unwrapped, *args, kwargs=kwargs)
    after = compilepairs.graph(ctx, case)
    if not before.breaks and not before.skipped and before.error is None and before.graphs:
        ctx.fail(f"the plain function compiles to {len(before.graphs)} graph without a break, as the op does")
    if after.breaks:
        ctx.fail(f"the plain function has {len(before.breaks)} graph breaks, the op {len(after.breaks)}")
