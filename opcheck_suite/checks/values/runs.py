"""The op works on its own samples."""

from opcheck_suite import registry


@registry.check(
    id="values.runs",
    title="The op fails on its own samples",
    what=(
        "Calls the op in eager on copies of every sample, and on the same sample with sizes changed to a prime and to"
        " one. On samples an exception is a failure; on derived inputs an exception is a refusal, and only the end of"
        " the process is a failure."
    ),
    why=(
        "A sample is a call that the author says is valid. An input that ends the process takes the user's work with "
        "it."
    ),
    fix="Correct the op or the sample; check arguments with TORCH_CHECK or torch._check before memory is touched.",
    docs="https://docs.pytorch.org/tutorials/advanced/cpp_custom_ops.html",
    tier="quick",
    failing_samples=True,
    variants=(
        "sample",
        "resized",
        "ones",
        "large",
        "ranks",
        "broadcast",
        "arguments",
        "floats",
        "integers",
        "content",
        "special",
    ),
)
def runs(ctx, case):
    from opcheck_suite import context

    if case.variant:
        ctx.require(case)
        return
    error = ctx.eager(case).error
    if error is not None:
        raise context.OpRaised(error, "the op")
