"""The compiler sees the op as one step."""

from opcheck_suite.registry import check


@check(
    id="compile.opaque",
    title="The compiler looks inside the op",
    what=(
        "Compiles a function that calls the op once and looks for the op in the graph that AOTAutograd hands to the "
        "backend: one call, with the op as its target; or, where an autograd kernel stands before it and the spec does "
        "not say opaque=True, a call of another operator of the library. With opaque=False the op must not be there."
    ),
    why=(
        "A custom op exists so that the compiler runs it as it is. If it is traced into, dropped or replaced, its own"
        " kernel does not run."
    ),
    fix=(
        "Register the kernel for devices with a fake kernel, not at CompositeImplicitAutograd; a kernel at an Autograd "
        "key must call the op again below autograd, and not compute the result itself."
    ),
    docs="https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html",
    tier="standard",
    scope="signature",
    applies=lambda ctx: (
        "torch does not functionalize ops whose outputs alias arguments"
        if ctx.info.returns_alias
        else "nobody says whether the op is meant to be decomposed: see registration.composite"
        if ctx.info.transparent and ctx.spec.opaque is None
        else None
    ),
)
def opaque(ctx, case):
    from opcheck_suite import compilepairs, ops

    compilepairs.ready(ctx, case)
    if compilepairs.graph(ctx, case).breaks:
        ctx.not_exercised("the call breaks the graph: see compile.graph_breaks")
    seen = compilepairs.compiled(ctx, case, "aot_eager")
    if seen.error is not None:
        ctx.not_exercised(f"the call does not compile, see compile.parity: {ctx.describe_error(seen.error)}")
    targets = compilepairs.aot_targets(ctx, case)
    count = targets.count(ctx.info.name)
    calls = ", ".join(targets[:6]) or "nothing"
    others = [t for t in targets if "::" in t and t.partition("::")[0] not in ops.TORCHS_OWN and t != ctx.info.name]
    if others and not count and ctx.spec.opaque is None:
        return
    if ctx.opaque and count != 1:
        ctx.fail(f"a function that calls the op once has it {count} times in its graph; the graph calls {calls}")
    if not ctx.opaque and count:
        ctx.fail(f"the op is meant to be decomposed, but is in the graph as it is; the graph calls {calls}")
