"""Fake and real outputs have one shape."""

from opcheck_suite.registry import check


@check(
    id="fake.shape",
    title="The fake kernel gives another shape",
    what=(
        "Compares number, kind and sizes of outputs between the op and its fake kernel, on every sample and on "
        "variants in size and layout, so that sizes written into the fake kernel are seen."
    ),
    why=(
        "Compiled code allocates and indexes by the fake shape: a wrong one is an assertion at best, and wrong "
        "numbers or memory errors at worst."
    ),
    fix=(
        "Derive every size from the inputs' shapes in the fake kernel; sizes that data decide come from "
        "get_ctx().new_dynamic_size()."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
    variants=("sample", "resized", "ones", "noncontiguous", "empty", "arguments", "content"),
)
def shape(ctx, case):
    from opcheck_suite import fakepairs, fakes

    for pair in fakepairs.tensor_pairs(ctx, case, report=True):
        sizes = fakes.sizes(pair.fake)
        real = list(pair.real.shape)
        if len(sizes) != len(real) or any(f is not None and f != r for f, r in zip(sizes, real, strict=True)):
            shown = [s if f is None else f for s, f in zip(pair.fake.shape, sizes, strict=True)]
            ctx.fail(f"{pair.name} has shape {real}, with fake tensors {shown}")
