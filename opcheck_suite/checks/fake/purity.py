"""Fake kernels leave their inputs as they are."""

from opcheck_suite.registry import check


@check(
    id="fake.purity",
    title="The fake kernel changes its inputs",
    what="Compares size, stride, offset and dtype of the fake arguments before and after the call.",
    why=(
        "While tracing, the arguments are the user's own: a changed shape goes into everything that is traced after "
        "the op."
    ),
    fix="Use out-of-place operations in the fake kernel: unsqueeze, not unsqueeze_.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
    applies=lambda ctx: None if ctx.info.takes_tensors else "the op takes no tensor",
)
def purity(ctx, case):
    from opcheck_suite.inputs import tensors

    ctx.require(case)
    run = ctx.fake(case)
    if run.unsupported:
        ctx.skip(f"fake tensors cannot stand for this input: {run.unsupported}")
    if run.error is not None:
        ctx.not_exercised("the fake kernel raises: see fake.runs")
    for (name, real), (_, fake) in zip(case.leaves(), case.leaves((run.args, run.kwargs)), strict=True):
        if not tensors.strided(real):
            continue
        before = (tuple(real.shape), tuple(real.stride()), real.storage_offset(), real.dtype)
        after = (tuple(fake.shape), tuple(fake.stride()), fake.storage_offset(), fake.dtype)
        if before != after:
            ctx.fail(f"the fake kernel changes argument {name!r}: it was {before[:3]}, is {after[:3]}")
