"""Inputs without elements."""

from opcheck_suite.registry import check


@check(
    id="values.empty",
    title="Inputs without elements end the process or give wrong results",
    what=(
        "Sets each distinct size of a sample to zero, wherever it occurs, and calls the op. It may refuse with an "
        "exception; it must not end the process, and must agree with the reference where the spec has one."
    ),
    why=(
        "The last batch of an epoch, an expert that no token is routed to, an empty detection: size zero occurs in "
        "production, and a kernel launch with zero blocks or a read of the first element then fails far from the "
        "cause."
    ),
    fix="Return early when numel() is zero, with outputs of the right shape; or refuse with TORCH_CHECK.",
    docs="https://docs.pytorch.org/docs/stable/generated/torch.numel.html",
    tier="quick",
    variants=("empty",),
    applies=lambda ctx: None if ctx.info.takes_tensors else "the op takes no tensor",
)
def empty(ctx, case):
    run = ctx.require(case)
    if ctx.spec.reference is None or not ctx.deterministic:
        return
    expected = ctx.reference(case)
    difference = None if expected is None else ctx.compare(run.results(), expected)
    if difference:
        ctx.fail(f"the result differs from the reference: {difference}")
