"""The op does not break the graph."""

from opcheck_suite.registry import check


@check(
    id="compile.graph_breaks",
    title="The op breaks the graph",
    what=(
        "Compiles a function that calls the op once and counts graph breaks, graphs, and frames that Dynamo gave up "
        "on and ran in eager. One graph without a break is right. Capturing of ops with data-dependent shapes is "
        "switched on."
    ),
    why=(
        "At a break, compiled code returns to Python: kernels are not fused across it. fullgraph=True fails, and so "
        "does torch.export with strict=True, which traces in the same way."
    ),
    fix=(
        "Read the reason: usually the fake kernel is missing or reads data, or the call goes through a Python wrapper "
        "that cannot be traced."
    ),
    docs="https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#graph-breaks",
    tier="standard",
    scope="signature",
)
def graph_breaks(ctx, case):
    from opcheck_suite import compilepairs

    compilepairs.ready(ctx, case)
    trace = compilepairs.graph(ctx, case)
    if trace.error is not None:
        ctx.fail(f"compiling a call of the op raised {ctx.describe_error(trace.error)}")
    if trace.breaks:
        lines = [f"{b.reason}{f' at {b.location}' if b.location else ''}" for b in trace.breaks[:3]]
        hint = next((b.hint for b in trace.breaks if b.hint), "")
        ctx.fail("\n".join([f"{len(trace.breaks)} graph breaks", *lines, *([f"hint    {hint}"] if hint else [])]))
    if len(trace.graphs) != 1 or trace.skipped:
        counts = f"{len(trace.graphs)} graphs were compiled and {trace.skipped} frames skipped"
        ctx.fail(f"{counts}, expected one graph and no skip")
