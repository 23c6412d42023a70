"""Compiled and eager calls agree."""

from opcheck_suite.registry import check


@check(
    id="compile.parity",
    title="Compiled and eager calls differ",
    what=(
        "Calls the op alone; in a loop on slices and transposed views of intermediates; between pointwise operations; "
        "under no_grad; on arguments and intermediates that are overwritten before and after; with results left "
        "unused. Compiles that with aot_eager and inductor and compares outputs, arguments, memory that outputs "
        "share, and gradients with eager; backend eager is tried where they differ. What eager refuses the compiled "
        "call must refuse. The tolerance is that of the coarsest dtype among arguments and outputs; where Inductor "
        "cannot be kept from fusing, samples in half precision are left to aot_eager."
    ),
    why=(
        "A schema or fake kernel that is not true of the op makes the compiler generate code that computes something "
        "else, mostly without an error."
    ),
    fix=(
        "The first backend that differs says where: eager is Dynamo, aot_eager adds functionalization and autograd, "
        "inductor adds generated code. Look at schema.* and fake.* first."
    ),
    docs="https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html",
    tier="standard",
    scope="signature",
)
def parity(ctx, case):
    from opcheck_suite import compilepairs, programs
    from opcheck_suite.context import NOT_FUNCTIONAL

    compilepairs.ready(ctx, case)
    compilepairs.eager(ctx, case)
    if not ctx.deterministic:
        ctx.skip("the op's values are random")
    if compilepairs.graph(ctx, case).breaks:
        ctx.not_exercised("the call breaks the graph: see compile.graph_breaks")
    kinds = [("parity", "eager" if ctx.info.returns_alias else "aot_eager")]
    if programs.under_inductor(ctx, case) == "inductor" and not (ctx.info.returns_alias or _rounds_less(ctx, case)):
        kinds.append(("inductor", "inductor"))  # otherwise: compile.effects
    for kind, backend in kinds:
        difference = programs.difference(ctx, case, kind, backend)
        if difference and backend != "eager" and "alias annotations" in difference:
            ctx.skip(f"agrees with backend eager; {NOT_FUNCTIONAL} ({backend})")
        if difference and "FallbackKernel output type" in difference:
            ctx.skip("agrees with other backends; Inductor has no place for a number that an op returns")
        if difference:
            ctx.fail(difference)
    if ctx.info.returns_alias:
        ctx.skip(f"agrees with backend eager; {NOT_FUNCTIONAL}")
    _refusal(ctx, case)


def _rounds_less(ctx, case):
    """Whether fused code keeps in float32 what eager rounds to half precision between ops, and differs for that alone:
    where terms cancel out, by more than any tolerance.
    """
    import torch

    from opcheck_suite import compare, inductor

    return compare.coarsest([case.args, case.kwargs]) in (torch.bfloat16, torch.float16) and inductor.generates(
        ctx.info.op
    )


def _refusal(ctx, case):
    """A call that eager refuses, compiled: if possible one that the fake kernel lets pass, so that the kernel runs."""
    from opcheck_suite import programs
    from opcheck_suite.context import Refused

    if ctx.info.transparent or not ctx.info.schema.returns:
        return
    refused = []
    for group in ("ranks", "broadcast", "content"):
        for made in ctx.variants(case, group):
            try:
                if ctx.eager(made).error is not None:
                    refused.append(made)
            except Refused:
                continue  # it ends the process
    chosen = next((made for made in refused if ctx.fake(made).error is None), refused[0] if refused else None)
    if chosen is None:
        return
    got = programs.build(ctx, chosen, programs.alone(), "aot_eager")
    if got.error is None:
        error = ctx.describe_error(ctx.eager(chosen).error)
        ctx.fail(f"eager refuses a call that passes with backend aot_eager: {chosen.describe()}\neager   {error}")
