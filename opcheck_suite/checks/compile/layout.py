"""The layouts that the compiler gives to the kernel are ones that the kernel can take."""

from opcheck_suite.registry import check


@check(
    id="compile.layout",
    title="Inductor gives the kernel strides that it cannot take",
    what=(
        "Notes the strides with which Inductor's code calls the op. Where the op's tags let Inductor choose, the op "
        "is also called on packed copies of transposed tensors and the reverse, which tempt it. Where strides differ "
        "from those in eager, the op is called on them: it must give the same result."
    ),
    why=(
        "A contiguous() before the call does not help: with flexible_layout Inductor may fuse it with what comes "
        "before and keep the layout that is quicker to write. The kernel then refuses the call, or reads the wrong "
        "elements."
    ),
    fix=(
        "Tag the op needs_exact_strides, which recent versions of torch take for custom ops anyway, and "
        "flexible_layout only if its kernel takes any strides; remove a lowering or layout constraint registered for "
        "it."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.define",
    tier="standard",
    scope="signature",
    applies=lambda ctx: (
        ctx.not_functional()
        or (
            "the op is transparent to the compiler: see registration.composite"
            if ctx.info.transparent
            else "a call without results that writes nothing may be dropped: see compile.effects"
            if not ctx.info.schema.returns and not ctx.info.mutated
            else None
        )
    ),
)
def layout(ctx, case):
    from opcheck_suite import compilepairs, inductor, layoutpairs
    from opcheck_suite.inputs import tensors

    compilepairs.ready(ctx, case)
    if compilepairs.graph(ctx, case).breaks:
        ctx.not_exercised("the call breaks the graph: see compile.graph_breaks")
    leaves = case.leaves()
    if not leaves or not all(tensors.strided(t) for _, t in leaves):
        ctx.skip("the op takes no tensor, or one without strides")
    if inductor.replaces(ctx.info.op):
        ctx.skip("Inductor has a lowering or decomposition for the op, and does not call it: see compile.opaque")
    pairs, refused, count = layoutpairs.changed(ctx, case)
    tag = inductor.constraint(ctx.info.op)
    for one in refused:
        error = ctx.describe_error(one.error)
        where = f"where   the op, called {one.situation.name}; its tag is {tag}"
        ctx.fail(f"with strides that Inductor chose the call does not compile: {error}\n{where}")
    if not count:
        ctx.not_exercised("Inductor's code makes no call of the op: see compile.parity and compile.opaque")
    expected = ctx.require(case).results()
    for situation, mine, theirs in pairs:
        if len(mine.layouts) != len(leaves):
            continue
        moved = [
            f"{name} {a.stride}, in eager {b.stride}"
            for (name, _), a, b in zip(leaves, mine.layouts, theirs.layouts, strict=True)
            if a.key != b.key
        ]
        where = f"strides {'; '.join(moved)}\nwhere   the op, called {situation.name}; its tag is {tag}"
        run = ctx.eager(layoutpairs.relaid(case, [one.stride for one in mine.layouts]))
        if run.error is not None:
            error = ctx.describe_error(run.error)
            ctx.fail(f"the op refuses strides that Inductor calls it with: {error}\n{where}")
        if ctx.deterministic and (text := ctx.compare(run.results(), expected)):
            ctx.fail(f"with strides that Inductor calls it with, {text}\n{where}")
