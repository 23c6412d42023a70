"""Arguments on the CPU beside others on the device are refused, or understood."""

from opcheck_suite.registry import check


def _applies(ctx):
    if ctx.device == "cpu":
        return "the run is on the CPU: --device names another"
    return None if ctx.info.takes_tensors else "the op takes no tensor"


@check(
    id="device.mixed",
    title="An argument on the CPU is taken for one on the device",
    what=(
        "Leaves one argument after the other on the CPU, the others on the device. The op may raise, and it may give "
        "the same result, as torch does for numbers (0-d tensors) and positions. Another result, or the end of the "
        "process or of the device, is a warning."
    ),
    why=(
        "A forgotten .to(device) is a common slip. The dispatcher calls the kernel of the device, which then takes an "
        "address of the host for one of its own: an illegal memory access, told by some later call, ends the process."
    ),
    fix='TORCH_CHECK(b.device() == a.device(), "..."), or torch._check in Python, before the kernel is launched.',
    docs="https://docs.pytorch.org/tutorials/advanced/cpp_custom_ops.html",
    tier="quick",
    severity="warn",
    scope="signature",
    applies=_applies,
)
def mixed(ctx, case):
    import dataclasses

    import torch

    from opcheck_suite.inputs import tensors

    run = ctx.require(case)
    kind = torch.device(ctx.device).type
    if not ctx.deterministic:
        ctx.skip("the op's values are random")
    on_device = [(n, t) for n, t in case.leaves() if t.device.type == kind and tensors.strided(t) and t.numel()]
    if sum(t.device.type == kind for _, t in case.leaves()) < 2:
        ctx.skip("the sample gives one tensor on the device: nothing can be mixed")
    if not on_device:
        ctx.skip("no tensor of the sample holds an element")
    for name, t in on_device:
        left = case.replace({name: tensors.fresh(t, device="cpu")}, variant=f"{name} on the CPU", group="mixed")
        # not a valid call: where it ends the process, that is a warning, too
        other = ctx.attempt(dataclasses.replace(left, uncertain=True))
        if other is not None and (difference := ctx.compare(other.results(), run.results())):
            ctx.fail(f"with argument {name!r} on the CPU the op computes something else: {difference}")
