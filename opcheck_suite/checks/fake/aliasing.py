"""Fake outputs are tensors of their own where real ones are."""

from opcheck_suite.registry import check


@check(
    id="fake.aliasing",
    title="The fake kernel returns one tensor where the op returns two",
    what=(
        "Looks for a tensor that the fake kernel returns twice, or that it returns although it is an argument, where "
        "the op's own outputs are separate and the schema declares no alias. Other fake outputs whose elements share "
        "memory where the op's do not are a warning: torch is not known to confuse views."
    ),
    why=(
        "AOTAutograd and export know values by their fake tensors. Of one that stands for two values, it keeps the "
        "last: other outputs, or later uses of the argument, silently become what the op returned there."
    ),
    fix="Make every output of the fake kernel with torch.empty_like(x), x.new_empty(...) or clone().",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
    variants=("sample", "noncontiguous", "arguments", "floats"),
    applies=lambda ctx: (
        "torch decomposes the op, and asks its parts"
        if ctx.info.transparent
        else None
        if any("Tensor" in str(r.type) for r in ctx.info.schema.returns)
        else "the op returns no tensor"
    ),
)
def aliasing(ctx, case):
    from opcheck_suite import fakepairs, fakes
    from opcheck_suite.inputs import tensors

    pairs = [p for p in fakepairs.tensor_pairs(ctx, case) if tensors.strided(p.real) and p.real.numel()]
    run, fake = ctx.require(case), ctx.fake(case)
    arguments = [
        (f"argument {name!r}", real, copy)
        for (name, real), (_, copy) in zip(run.leaves(), case.leaves((fake.args, fake.kwargs)), strict=True)
        if not ctx.info.returns_alias  # schema.aliasing tells of a declared view that is a copy
    ]
    shared = []
    for n, pair in enumerate(pairs):
        for what, real, other in [*((p.name, p.real, p.fake) for p in pairs[:n]), *arguments]:
            # where the op's own outputs share memory, schema.aliasing tells
            if tensors.overlap(pair.real, real) or not fakes.share(pair.fake, other):
                continue
            if pair.fake is other:
                ctx.fail(f"{pair.name} and {what} are one tensor with fake tensors, the op returns new memory")
            shared.append(f"{pair.name} shares memory with {what} with fake tensors, the op returns new memory")
    if shared:
        ctx.warn(shared[0])
