"""The fake kernel can be called as the schema says."""

from opcheck_suite.registry import check


@check(
    id="registration.fake_signature",
    title="The fake kernel has another signature than the op",
    what=(
        "Compares the parameters of the Python fake kernel with the schema: how many, which are keyword-only, in "
        "which order, with which defaults."
    ),
    why=(
        "register_fake accepts any function. The mistake shows only under torch.compile, as a TypeError that names "
        "neither the op nor the fake kernel, or not at all where two arguments of one type are swapped or a default "
        "differs."
    ),
    fix="Give the fake kernel the parameters of the schema, in its order and with its defaults.",
    docs="https://github.com/pytorch/pytorch/issues/181851",
    tier="static",
    scope="op",
    applies=lambda ctx: None if ctx.info.fake_function is not None else "the op has no fake kernel in Python",
)
def fake_signature(ctx):
    from opcheck_suite import signatures

    signatures.compare(ctx, ctx.info.fake_function, "fake kernel")
