"""Second derivatives are right, or refused."""

from opcheck_suite import gradients
from opcheck_suite.registry import check


@check(
    id="autograd.double",
    title="The second derivative is wrong",
    what=(
        "Differentiates the op's gradient and compares with finite differences (torch.autograd.gradgradcheck, float64). "
        "Formulas that refuse a second backward with an exception are right."
    ),
    why="Gradient penalties, Hessians and meta-learning differentiate twice; a detached tensor in backward gives zero, silently.",
    fix="Write backward with differentiable ops on saved tensors, or mark it torch.autograd.function.once_differentiable.",
    docs="https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html",
    tier="standard",
    severity="warn",
    scope="signature",
    applies=gradients.inapplicable,
)
def double(ctx, case):
    import torch
    from torch.autograd.gradcheck import GradcheckError

    from opcheck_suite import compilepairs

    wide = case.map(
        lambda t: t.detach().double() if t.is_floating_point() else t.detach(), variant="float64", group="float64"
    )
    if ctx.attempt(wide) is None:
        ctx.skip("the op refuses float64, in which alone finite differences are precise enough")
    names = sorted(compilepairs.gradient_leaves(ctx, wide))
    if not names:
        ctx.skip("no argument of this sample is a floating-point tensor")

    def call(*leaves):
        args, kwargs = wide.replace(dict(zip(names, leaves, strict=True)), variant="", group="").raw()
        out = ctx.info.op(*args, **kwargs)
        flat = [t for t in (out if isinstance(out, tuple | list) else [out]) if isinstance(t, torch.Tensor)]
        return tuple(t for t in flat if t.requires_grad)

    leaves = dict(wide.leaves(wide.inputs()))
    inputs = [leaves[n].requires_grad_() for n in names]
    try:
        with ctx.seeded():
            torch.autograd.gradgradcheck(call, inputs, check_batched_grad=False, check_undefined_grad=False, atol=1e-4)
    except GradcheckError as error:
        ctx.fail(f"the second derivative is wrong: {ctx.describe_error(error)}")
    except Exception as error:
        ctx.skip(f"a second backward is refused: {ctx.describe_error(error)}")
