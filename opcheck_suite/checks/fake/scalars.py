"""Numbers that an op returns are known to the fake kernel, or symbols."""

from opcheck_suite.registry import check


@check(
    id="fake.scalars",
    title="The fake kernel returns another number",
    what=(
        "Compares outputs that are numbers, booleans or strings between the op and its fake kernel, on samples and "
        "with all values negative, positive and zero. A symbol stands for any number."
    ),
    why="The number that the fake kernel returns is written into the compiled code, for every input.",
    fix="Compute it from sizes; a number that data decides comes from torch.library.get_ctx().new_dynamic_size().",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.get_ctx",
    tier="quick",
    variants=("sample", "content", "resized"),
    applies=lambda ctx: (
        None if any("Tensor" not in str(r.type) for r in ctx.info.schema.returns) else "the op returns tensors only"
    ),
)
def scalars(ctx, case):
    import torch

    from opcheck_suite import fakepairs, fakes

    looked = False
    for pair in fakepairs.pairs(ctx, case):
        if isinstance(pair.real, torch.Tensor) or pair.real is None:
            continue
        looked = True
        told = fakes.known(pair.fake) or isinstance(pair.fake, str)
        if told and (type(pair.fake) is not type(pair.real) or pair.fake != pair.real):
            ctx.fail(f"{pair.name} is {pair.real!r}, with fake tensors {pair.fake!r}")
    if not looked:
        ctx.skip("the op returns no number here")
