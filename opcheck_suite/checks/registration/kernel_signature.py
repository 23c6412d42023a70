"""A Python kernel can be called as the schema says."""

from opcheck_suite.registry import check


@check(
    id="registration.kernel_signature",
    title="The kernel has another signature than the schema",
    what=(
        "Compares names, order, keyword-only arguments and defaults of the Python function registered with "
        "torch.library.impl with the schema. The function is found by watching a call."
    ),
    why=(
        "The dispatcher passes arguments by position and drops those equal to the schema's default: with another "
        "default in the kernel, an argument that was given in so many words is replaced, and swapped names compute "
        "with swapped values."
    ),
    fix="Give the kernel the parameters of the schema, in its order and with its defaults.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.impl",
    tier="quick",
    scope="op",
    applies=lambda ctx: "registration.schema looks at the function" if ctx.info.function is not None else None,
)
def kernel_signature(ctx):
    from opcheck_suite import pykernel, signatures

    kernel = pykernel.first(ctx)
    if kernel is None:
        ctx.skip("the op's kernel is not a Python function")
    signatures.compare(ctx, kernel.function, "kernel", without=kernel.bound)
