"""A kernel for every device that the op claims."""

from opcheck_suite.registry import check


def _applies(ctx):
    if ctx.spec.devices is not None:
        if ctx.device.partition(":")[0] not in ctx.spec.devices:
            return f"the spec does not claim {ctx.device}"
        return None
    if ctx.info.kernel_for(ctx.device) is None:
        if ctx.device != "cpu":
            return f"the op has no kernel for {ctx.device}, and its spec claims none"
        if ctx.info.devices and not ctx.given_for_cpu:
            return f"the op has kernels for {', '.join(ctx.info.devices)}, and nothing claims one for {ctx.device}"
    return None


@check(
    id="registration.kernel",
    title="No kernel for a device",
    what=(
        "Looks for a kernel at the dispatch key of the device, or a composite one. Devices that the spec claims are "
        "all looked at, wherever the run takes place."
    ),
    why="A call with tensors of that device raises NotImplementedError.",
    fix="Register a kernel for the device, or take the device out of the spec's devices.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.impl",
    tier="static",
    scope="op",
    applies=_applies,
)
def kernel(ctx):
    lacking = [d for d in ctx.spec.devices or (ctx.device,) if ctx.info.kernel_for(d) is None]
    if lacking:
        have = ", ".join(ctx.info.kernels) or "nothing"
        text = f"{ctx.info.name} has no kernel for {', '.join(lacking)}; it has kernels for {have}"
        if ctx.info.definition is None and any(key.startswith("Autograd") for key in ctx.info.kernels):
            text += "\nthe kernel at Autograd serves calls, except under torch.inference_mode()"
        ctx.fail(text)
