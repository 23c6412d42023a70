"""The op works on a device that is not the current one."""

from opcheck_suite.registry import check


def _applies(ctx):
    import torch

    from opcheck_suite import queued

    if (reason := queued.why_not(ctx)) is not None:
        return reason
    return None if torch.accelerator.device_count() > 1 else f"the machine has one {ctx.device} device, two are needed"


@check(
    id="device.guard",
    title="The op relies on the current device",
    what=(
        "Calls the op on copies of the sample on another device than the current one, with work queued there on which "
        "the arguments depend. Outputs must be on the device of the arguments and have the same values, and the "
        "current device must stay. A refusal is a warning."
    ),
    why=(
        "With several GPUs the arguments' device is often not the current one. Without a guard, kernels and memory "
        "land on the current device: an illegal memory access, or a race between two devices."
    ),
    fix=(
        "Begin with const c10::cuda::CUDAGuard guard(x.device()) (at::OptionalDeviceGuard for any backend), or "
        "torch.cuda.device_of(x) in Python, and allocate with x.options()."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    tier="quick",
    scope="signature",
    applies=_applies,
)
def guard(ctx, case):
    import torch

    from opcheck_suite import alternatives, context, queued
    from opcheck_suite.inputs import tensors

    queued.plain(ctx, case)
    here = torch.accelerator.current_device_index()
    there = (here + 1) % torch.accelerator.device_count()
    others = alternatives.of(ctx, case)
    before = others[0] if others else case
    try:
        late = queued.call(ctx, case, before, index=there, stream=None, load=bool(others))
    except context.OpRaised as raised:
        ctx.synchronize(there)
        ctx.warn(f"with {ctx.device}:{here} current, {raised}")
    finally:
        stayed = torch.accelerator.current_device_index()
        torch.accelerator.set_device_index(here)
    if stayed != here:
        device = ctx.device
        ctx.fail(f"the current device is {device}:{stayed} after a call on {device}:{there}; it was {device}:{here}")
    expected = ctx.require(case).results()
    for n, (got, want) in enumerate(zip(tensors.tensors(late.results), tensors.tensors(expected), strict=False)):
        if want.device.type == torch.device(ctx.device).type and got.device.index != there:
            ctx.fail(f"for arguments on {ctx.device}:{there}, output {n} is on {got.device}, the current device")
    if difference := ctx.compare(late.results, expected):
        ctx.fail(f"on {ctx.device}:{there}, with :{here} current, the result is another: {difference}")
