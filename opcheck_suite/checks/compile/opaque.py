"""The compiler sees the op as one step."""

from opcheck_suite.registry import check


@check(
    id="compile.opaque",
    title="The compiler looks inside the op",
    what=(
        "Compiles a function that calls the op once and looks for the op in the Dynamo graph: one call, with the op "
        "as its target. With opaque=False the op must not be there, and its parts must."
    ),
    why=(
        "A custom op exists so that the compiler runs it as it is. If it is traced into, dropped or replaced, its own"
        " kernel does not run."
    ),
    fix=(
        "Register the kernel for devices with a fake kernel, not at CompositeImplicitAutograd, and call it through "
        "torch.ops."
    ),
    docs="https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html",
    tier="standard",
    scope="signature",
)
def opaque(ctx, case):
    from opcheck_suite import compilepairs

    compilepairs.ready(ctx, case)
    trace = compilepairs.graph(ctx, case)
    if trace.error is not None:
        ctx.fail(f"compiling a call of the op raised {ctx.describe_error(trace.error)}")
    count = sum(target == ctx.info.name for target in trace.targets)
    seen = ", ".join(trace.targets[:6]) or "nothing"
    if count != 1:
        ctx.fail(f"a function that calls the op once has it {count} times in its graph; the graph calls {seen}")
