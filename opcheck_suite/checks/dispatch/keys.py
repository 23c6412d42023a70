"""Every device that has a kernel has the gradient, too."""

from opcheck_suite.registry import check


@check(
    id="dispatch.keys",
    title="The gradient is registered for some devices only",
    what=(
        "Looks for ops whose autograd kernels are at keys of single devices, such as AutogradCPU, while the op has "
        "kernels for other devices. A failure where the spec claims such a device and that the op is differentiable, "
        "else a warning."
    ),
    why="On the other devices the op computes, but its output takes no part in the graph: training stops at the op.",
    fix="Register the autograd kernel at the key Autograd, which stands for all devices, or at that of each device.",
    docs="https://docs.pytorch.org/tutorials/advanced/dispatcher.html",
    tier="static",
    scope="op",
    applies=lambda ctx: (
        None if ctx.info.autograd_devices else "no autograd kernel of the op is for a single type of device"
    ),
)
def keys(ctx):
    claimed = ctx.spec.devices or ()
    have = [d for d in dict.fromkeys((*ctx.info.devices, *claimed)) if ctx.info.kernel_for(d) is not None]
    lacking = [d for d in have if ctx.info.autograd_for(d) is None]
    if not lacking:
        return
    where = ", ".join(ctx.info.autograd_for(d) for d in ctx.info.autograd_devices)
    text = f"{ctx.info.name} has kernels for {', '.join(have)}, but its gradient is registered at {where} only"
    if ctx.spec.differentiable and set(lacking) & set(claimed):
        ctx.fail(text)
    ctx.warn(text)
