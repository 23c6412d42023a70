"""The fake kernel accepts what the op accepts."""

from opcheck_suite.registry import check


@check(
    id="fake.runs",
    title="The fake kernel fails where the op works",
    what=(
        "Calls the op on fake copies of every sample, and of variants in layout and size that the op accepts in eager."
    ),
    why=(
        "torch.compile and torch.export call the fake kernel first: where it raises, a call that works in eager "
        "cannot be compiled. A C++ kernel that is also reached with fake tensors reads memory that is not there and "
        "ends the process."
    ),
    fix="Compute output metadata from the inputs' metadata only; do not read data, and do not branch on values.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
    variants=("sample", "resized", "ones", "noncontiguous", "offset", "expanded", "empty", "arguments", "floats"),
)
def runs(ctx, case):
    ctx.require(case)
    run = ctx.fake(case)
    if run.unsupported:
        ctx.skip(f"fake tensors cannot stand for this input: {run.unsupported}")
    # of these very types are refusals; torch has subclasses for fake kernels that look at values
    if case.uncertain and type(run.error) in (RuntimeError, ValueError, AssertionError):
        ctx.skip(f"the op may take by chance what its fake kernel refuses: {ctx.describe_error(run.error)}")
    if run.error is not None:
        ctx.fail(f"the op accepts this call, but with fake tensors it raises {ctx.describe_error(run.error)}")
