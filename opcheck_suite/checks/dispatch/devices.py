"""Kernels in Python follow their inputs to another device."""

from opcheck_suite.registry import check


@check(
    id="dispatch.devices",
    title="The kernel does not follow its inputs to another device",
    what=(
        "On machines without a GPU, runs the Python kernel that is registered for CUDA, or for all devices, on tensors "
        "that say they are on CUDA, and keeps book of where each result would be. Operators must not be given tensors "
        "on two devices, values not be read as if they were in the CPU's memory, and outputs must be where the fake "
        "kernel says. A failure where the spec claims the device, else a warning."
    ),
    why=(
        "torch.zeros(...) without a device is on the CPU. A kernel that allocates so raises where there is a GPU, or "
        "returns a CPU tensor, and tests on the CPU do not show it."
    ),
    fix=(
        "Allocate from an input (x.new_zeros, torch.empty_like) or with device=x.device, and move what NumPy computed "
        "back with .to(x.device); or register the kernel for the CPU alone: device_types='cpu'."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    tier="quick",
    scope="signature",
    applies=lambda ctx: (
        "the op takes no tensor"
        if not ctx.info.takes_tensors
        else "the run is on a device itself"
        if ctx.device != "cpu"
        else "the spec claims the CPU alone"
        if ctx.spec.devices is not None and not _other_devices(ctx)
        else f"this machine has {_device(ctx)}: --device {_device(ctx)} tells"
        if _available(_device(ctx))
        else None
    ),
)
def devices(ctx, case):
    from opcheck_suite.inputs import tensors

    ctx.require(case)
    function = _kernel(ctx, case)
    if function is None:
        ctx.skip(f"no Python kernel is known that would run on {_device(ctx)}")
    if not case.leaves() or not all(tensors.strided(t) for _, t in case.leaves()):
        ctx.skip("the sample gives no plain tensor")
    text = _judge(ctx, case, function)
    if text is None:
        return
    names = [name for name, _ in case.leaves()]
    for name in names if len(names) > 1 else []:
        if _judge(ctx, case, function, stay=name) is None:
            ctx.skip(f"the kernel works where {name!r} stays on the CPU, and whether that is meant is not known")
    if ctx.spec.devices is None:
        ctx.warn(f"{text}\nthe kernel is registered for all devices")
    ctx.fail(text)


def _other_devices(ctx):
    return [d for d in ctx.spec.devices or () if d != "cpu"]


def _device(ctx):
    return next(iter(_other_devices(ctx)), "cuda")


def _available(device):
    import torch

    module = getattr(torch, device, None)
    return bool(getattr(module, "is_available", lambda: False)())


def _kernel(ctx, case):
    """The Python function that runs for tensors of the other device, or None."""
    from opcheck_suite import pykernel

    device = _device(ctx)
    if (function := ctx.info.function_for(device)) is not None:
        return function
    key = ctx.info.kernel_for(device)
    if key is None or key != ctx.info.kernel_for(ctx.device):
        return None
    kernel = pykernel.of(ctx, case)  # one for all devices, so that it can be watched on the CPU
    return None if kernel is None else kernel.function


def _judge(ctx, case, function, *, stay=None):
    """What goes wrong on the other device, in words; None if nothing does.

    Ends the check where that cannot be told.
    """
    from opcheck_suite import elsewhere, fakepairs
    from opcheck_suite.inputs import tensors

    device = _device(ctx)
    args, kwargs = case.inputs()
    kept = dict(case.leaves((args, kwargs))).get(stay)
    try:
        with ctx.seeded():
            out = elsewhere.run(function, args, kwargs, device, stay=kept)
    except (elsewhere.Mixed, elsewhere.ReadsHost) as error:
        if isinstance(error, elsewhere.ReadsHost) and ctx.spec.devices is None:
            ctx.skip(f"the kernel is one for the CPU alone ({error}), and the spec claims no other device")
        return f"on {device} the kernel fails: {error}\nat {elsewhere.own_line(error)}"
    except Exception as error:
        ctx.skip(f"without {device} the kernel cannot be followed: {ctx.describe_error(error)}")
    fake = ctx.fake(case, device=device)
    known = fake.error is None and not fake.unsupported
    expected = dict(fakepairs.flat(fake.outputs)) if known else {}
    for name, value in fakepairs.flat(tensors.listed(out)):
        if not hasattr(value, "device"):
            continue
        place = elsewhere.place_of(value)
        if place is None:
            ctx.skip(f"where {name} is on {device} cannot be told: it does not come from torch")
        wanted = expected[name].device.type if hasattr(expected.get(name), "device") else device
        if place.type == "cpu" != wanted:  # fake.placement is the one to say that the fake kernel is on the CPU
            return f"for inputs on {device}, {name} is on cpu, with fake tensors on {wanted}"
    return None
