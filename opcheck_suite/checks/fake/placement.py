"""Fake outputs follow their inputs to other devices."""

from opcheck_suite.registry import check


@check(
    id="fake.placement",
    title="The fake kernel allocates on the wrong device",
    what=(
        "Calls the fake kernel with fake CUDA tensors, and cuda for device arguments, which needs no GPU. Outputs "
        "must be on CUDA, unless the fake kernel names another device for them. It may refuse CUDA where neither the "
        "spec nor a kernel claims it."
    ),
    why=(
        "A fake kernel that allocates with torch.empty(...) and no device gives CPU tensors on every machine with a "
        "GPU: torch.compile then fails, or inserts copies."
    ),
    fix="Allocate from an input, as x.new_empty(...) and torch.empty_like(x) do, or pass device=x.device.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
    scope="signature",
    applies=lambda ctx: (
        "the op takes no tensor"
        if not ctx.info.takes_tensors
        else "the op has no fake kernel of its own"
        if ctx.info.fake not in ("python", "meta")
        else "the spec does not claim CUDA"
        if ctx.spec.devices is not None and "cuda" not in ctx.spec.devices
        else None
    ),
)
def placement(ctx, case):
    from opcheck_suite import fakepairs, fakes
    from opcheck_suite.inputs import tensors

    ctx.require(case)
    if not all(tensors.strided(t) for _, t in case.leaves()) or not case.leaves():
        ctx.skip("the sample gives no plain tensor")
    if ctx.fake(case).error is not None:
        ctx.not_exercised("the fake kernel raises: see fake.runs")
    run = ctx.fake(case, device="cuda")
    if run.error is not None:
        text = f"with fake CUDA tensors the fake kernel raises {ctx.describe_error(run.error)}"
        claimed = "cuda" in (ctx.spec.devices or ctx.info.devices)
        mixed = "same device" in str(run.error) or "two different devices" in str(run.error)  # torch's words
        if not claimed and not mixed:
            ctx.skip(f"{text}; nothing claims CUDA")
        ctx.fail(text)
    if any(a.name not in case.bound() for a in ctx.info.schema.arguments if "Device" in str(a.real_type)):
        ctx.skip("the sample leaves the device to the op")
    outputs = [(name, value) for name, value in fakepairs.flat(run.outputs) if fakes.is_fake(value)]
    wrong = [n for n, (_, value) in enumerate(outputs) if value.device.type != "cuda" and value.numel()]
    asked = fakes.asked_for(ctx.info, case, "cuda") if wrong else []
    for n in wrong:
        name, value = outputs[n]
        if not (n < len(asked) and asked[n]):
            ctx.fail(f"{name} is on {value.device} although all inputs are on CUDA")
