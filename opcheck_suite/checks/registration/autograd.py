"""An autograd formula for ops that claim to be differentiable."""

from opcheck_suite.registry import check


@check(
    id="registration.autograd",
    title="Differentiable, but without an autograd formula",
    what=(
        "Looks for a formula of the op's own: register_autograd, a kernel at an Autograd key, or a composite "
        "implementation. The kernel that torch.library.custom_op puts at the Autograd key of every op does not count."
    ),
    why="Without a formula, backward raises or stops silently at the op, and training goes wrong.",
    fix="Register one with torch.library.register_autograd, or set differentiable=False in the spec.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autograd",
    tier="static",
    scope="op",
    applies=lambda ctx: None if ctx.spec.differentiable else "the spec does not claim that the op is differentiable",
)
def autograd(ctx):
    if ctx.info.autograd is None:
        ctx.fail(f"{ctx.info.name} claims to be differentiable, but no autograd formula is registered")
