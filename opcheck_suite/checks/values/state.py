"""The process is left as it was found."""

from opcheck_suite.registry import check


@check(
    id="values.state",
    title="The op changes the state of the process",
    what=(
        "Compares grad mode, default dtype, thread count, deterministic mode, autocast, working directory, warning "
        "filters, stdout and stderr before and after each call, and counts what the call printed (64 KiB are "
        "allowed)."
    ),
    why=(
        "What runs after the op then behaves differently: parameters of the wrong dtype, gradients that are not "
        "recorded, logs that fill a disk."
    ),
    fix="Use context managers such as torch.no_grad() that put the state back, also when an exception is raised.",
    docs="https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation",
    tier="quick",
    variants=("sample",),
)
def state(ctx, case):
    left = ctx.require(case).left_behind
    if left:
        ctx.fail(f"the call leaves the process changed: {'; '.join(left)}")
