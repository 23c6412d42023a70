"""A fake kernel must be there."""

from opcheck_suite.registry import check


@check(
    id="registration.fake",
    title="No fake kernel",
    what="Looks for a fake kernel: registered in Python, a Meta kernel, or a composite implementation.",
    why=(
        "torch.compile and torch.export run ops on tensors without data to learn the outputs' shapes. Without a fake "
        "kernel they stop at the op."
    ),
    fix="Register one with torch.library.register_fake, or a Meta kernel in C++ with TORCH_LIBRARY_IMPL(ns, Meta, m).",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="static",
    scope="op",
)
def fake(ctx):
    if ctx.info.fake is None:
        # what custom_op puts at Meta and Autograd of every op only raises
        have = ", ".join(k for k in ctx.info.kernels if k != "Meta" and not k.startswith("Autograd")) or "nothing"
        text = f"{ctx.info.name} has no fake kernel; it has kernels for {have}"
        if ctx.info.definition is None and any(key.startswith("Autograd") for key in ctx.info.kernels):
            ctx.warn(f"{text}, and one at Autograd that serves fake tensors, except under torch.inference_mode()")
        ctx.fail(text)
