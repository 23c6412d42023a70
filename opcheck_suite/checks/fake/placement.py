"""Fake outputs follow their inputs to other devices."""

from opcheck_suite.registry import check


@check(
    id="fake.placement",
    title="The fake kernel allocates on the wrong device",
    what=(
        "Calls the fake kernel with fake CUDA tensors, and cuda for device arguments, which needs no GPU. Outputs "
        "must be on CUDA."
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
        ctx.fail(f"with fake CUDA tensors the fake kernel raises {ctx.describe_error(run.error)}")
    for name, value in fakepairs.flat(run.outputs):
        if fakes.is_fake(value) and value.device.type != "cuda":
            ctx.fail(f"{name} is on {value.device} although all inputs are on CUDA")
