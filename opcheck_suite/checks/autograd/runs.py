"""Backward runs."""

from opcheck_suite.registry import check


@check(
    id="autograd.runs",
    title="Training through the op raises",
    what=(
        "Calls the op with its floating-point arguments requiring grad, and runs backward once from all outputs that "
        "do. Unless the spec says differentiable=True, the op may refuse in words that say so (NotImplementedError, or "
        "a message that gradients are not supported)."
    ),
    why="The op works in evaluation, and the first step of training ends in an exception.",
    fix=(
        "Return gradients of the shapes and dtypes of the arguments, and save for backward all that the formula needs;"
        " an op without gradients should have no formula, or refuse with NotImplementedError."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autograd",
    tier="quick",
    applies=lambda ctx: ctx.no_gradients(),
)
def runs(ctx, case):
    from opcheck_suite import gradients
    from opcheck_suite.context import OpRaised

    try:
        run = gradients.forward(ctx, case, report=True)
        gradients.run(ctx, lambda: run.backward(run.seeds()))
    except OpRaised as raised:
        if ctx.spec.differentiable is None and gradients.refuses(raised.error):
            ctx.skip(f"the spec does not claim that there are gradients: {raised}")
        raise
