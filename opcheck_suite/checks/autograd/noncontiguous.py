"""Backward reads what it saved through strides."""

from opcheck_suite.registry import check


@check(
    id="autograd.noncontiguous",
    title="The layout of the inputs changes the gradient",
    what=(
        "Runs forward and backward on the same values in other layouts (transposed, with gaps, padded rows, channels "
        "last, at an offset, expanded), and compares the gradients with those of packed arguments."
    ),
    why=(
        "Backward meets the arguments as they were saved, views and all. A backward kernel that walks data_ptr() gives "
        "wrong gradients where forward is right, and one that calls .view() raises."
    ),
    fix="Save what forward has made contiguous, or call .contiguous() and reshape() on saved tensors in backward.",
    docs="https://docs.pytorch.org/docs/stable/notes/extending.html",
    tier="standard",
    variants=("noncontiguous", "offset", "expanded"),
    applies=lambda ctx: ctx.no_gradients(),
)
def noncontiguous(ctx, case):
    from opcheck_suite import gradients

    if not ctx.deterministic:
        ctx.skip("the op's values are random")
    base = case.packed()
    gradients.backward_runs(ctx, base)
    if ctx.compare(ctx.require(case).results(), ctx.require(base).results()):
        ctx.not_exercised("the result itself changes: see values.noncontiguous")
    packed = gradients.forward(ctx, base)
    expected = gradients.plain(ctx, packed, packed.seeds())
    got = gradients.attempt(ctx, case)
    for name, grad in expected.items():
        if difference := ctx.compare([got[name]], [grad], names=f"the gradient of {name!r}"):
            ctx.fail(f"the layout of an input changes the gradient: {difference}")
