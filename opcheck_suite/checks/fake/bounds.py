"""Promises about data-dependent sizes hold."""

from opcheck_suite.registry import check


@check(
    id="fake.bounds",
    title="A data-dependent size breaks the fake kernel's promise",
    what=(
        "For outputs whose size data decides, compares the range that the fake kernel gives to new_dynamic_size with "
        "the sizes that the op returns: on samples, and with all values negative, positive and zero."
    ),
    why="The compiler removes branches by the promised range. A size outside of it is an assertion, or wrong results.",
    fix="Give new_dynamic_size(min=..., max=...) bounds that hold for every input; zero hits are an input, too.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.get_ctx",
    tier="quick",
    variants=("sample", "content"),
)
def bounds(ctx, case):
    from opcheck_suite import fakepairs, fakes

    symbolic = False
    for pair in fakepairs.tensor_pairs(ctx, case):
        for dim, size in enumerate(pair.fake.shape[: pair.real.dim()]):
            if fakes.known(size):
                continue
            symbolic = True
            low, high = fakes.bounds(ctx.fake(case), size)
            real = pair.real.shape[dim]
            if real < low or (high is not None and real > high):
                promised = f"at least {low}" if high is None else f"from {low} to {high}"
                ctx.fail(f"{pair.name} has size {real} in dimension {dim}, the fake kernel promises {promised}")
    if not symbolic:
        ctx.skip("data decides no size of an output")
