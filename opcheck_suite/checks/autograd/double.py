"""Second derivatives are right, or refused."""

from opcheck_suite.registry import check


@check(
    id="autograd.double",
    title="The second derivative is wrong",
    what=(
        "Differentiates the op's gradient and compares with finite differences (torch.autograd.gradgradcheck, "
        "float64). Formulas that refuse a second backward with an exception are right."
    ),
    why=(
        "Gradient penalties, Hessians and meta-learning differentiate twice; a detached tensor in backward gives "
        "zero, silently."
    ),
    fix=(
        "Write backward with differentiable ops on saved tensors, or mark it "
        "torch.autograd.function.once_differentiable."
    ),
    docs="https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html",
    tier="standard",
    severity="warn",
    scope="signature",
    applies=lambda ctx: ctx.no_gradients(),
)
def double(ctx, case):
    import contextlib

    import torch
    from torch.autograd.gradcheck import GradcheckError

    from opcheck_suite import gradients

    wide = gradients.in_float64(ctx, case)
    if wide is None:
        ctx.skip("the op refuses float64, in which alone finite differences are precise enough")
    call, inputs, _ = gradients.as_function(ctx, wide)

    def check(at):
        with ctx.seeded():
            torch.autograd.gradgradcheck(call, at, check_batched_grad=False, check_undefined_grad=False, atol=1e-4)

    try:
        check(inputs)
    except GradcheckError as error:
        with contextlib.suppress(GradcheckError):
            check(gradients.nearby(inputs, 1e-4))
            return  # the sample lies where there is no derivative
        if not gradients.precise(lambda *at: _first(call, at), inputs, gradients.EXACT):
            ctx.skip("finite differences of the gradient depend on the step: the op rounds what it is given")
        ctx.fail(f"the second derivative is wrong: {ctx.describe_error(error)}")
    except Exception as error:
        ctx.skip(f"a second backward is refused: {ctx.describe_error(error)}")


def _first(call, at):
    """The gradient itself, of outputs with uneven weights."""
    import torch

    from opcheck_suite import compilepairs

    outs = call(*at)
    weights = [compilepairs.weights(t) for t in outs]
    grads = torch.autograd.grad(outs, at, weights, allow_unused=True)
    return tuple(g.detach() for g in grads if g is not None)
