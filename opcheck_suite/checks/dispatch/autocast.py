"""What autocast makes of the arguments works forward and backward."""

from opcheck_suite.registry import check


@check(
    id="dispatch.autocast",
    title="Training in bfloat16 fails",
    what=(
        "Calls a differentiable op with bfloat16 arguments, as autocast casts them; where forward accepts them, "
        "backward must."
    ),
    why=(
        "Under autocast the incoming gradient may have another dtype than what was saved, and backward raises in the "
        "first step."
    ),
    fix=(
        "Cast the incoming gradient to the dtype of what it is combined with; or register_autocast with one dtype for "
        "all."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autocast",
    tier="standard",
    severity="warn",
    scope="signature",
    applies=lambda ctx: ctx.no_gradients(),
)
def autocast(ctx, case):
    from opcheck_suite import compilepairs

    low = next((c for c in ctx.variants(case, "floats") if c.variant == "bfloat16"), None)
    if low is None or ctx.attempt(low) is None or not compilepairs.gradient_leaves(ctx, case):
        ctx.skip("the op refuses bfloat16")
    if compilepairs.observe(ctx, case, ctx.info.op, gradients=True).error is not None:
        ctx.not_exercised("backward fails in the sample's own dtype: see autograd.runs")
    seen = compilepairs.observe(ctx, low, ctx.info.op, gradients=True)
    if seen.error is not None:
        ctx.fail(f"forward accepts bfloat16, backward raises {ctx.describe_error(seen.error)}")
