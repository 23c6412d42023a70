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
    if before.error is not None:
        _ends_by_itself(ctx, case)
    after = compilepairs.graph(ctx, case)
    if before.whole:
        ctx.fail(f"the plain function compiles to {len(before.graphs)} graph without a break, as the op does")
    if after.breaks:
        ctx.fail(f"the plain function has {len(before.breaks)} graph breaks, the op {len(after.breaks)}")


def _ends_by_itself(ctx, case):
    """A plain function that raises anyway is no reason for an op."""
    args, kwargs = case.inputs()
    try:
        with ctx.seeded():
            ctx.spec.unwrapped(*args, **kwargs)
    except Exception as error:
        ctx.fail(
            f"the plain function raises where the op does not, without being compiled: {ctx.describe_error(error)}"
        )
