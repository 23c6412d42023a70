"""Ops must read and write through strides."""

from opcheck_suite.registry import check


@check(
    id="values.noncontiguous",
    title="The layout of the inputs changes the result",
    what=(
        "Calls the op on the same values in other layouts (transposed, a gap after each element, padded rows, "
        "channels last, an offset that breaks alignment, expanded; conj and neg views where the op's kernel may meet "
        "them) and compares outputs and mutated arguments with the packed call. Memory that a view skips holds NaN or "
        "large numbers. With requires_contiguous=True, strided inputs must be refused instead."
    ),
    why=(
        "A kernel that walks data_ptr() linearly returns wrong numbers, without an error, for every view a user passes."
    ),
    fix=(
        "Index through strides, call .contiguous() before taking data_ptr(), or refuse with "
        "TORCH_CHECK(x.is_contiguous(), ...). For conj and neg views: x.resolve_conj().resolve_neg()."
    ),
    docs="https://docs.pytorch.org/tutorials/advanced/cpp_custom_ops.html",
    tier="quick",
    variants=("noncontiguous", "offset", "expanded", "lazy"),
    applies=lambda ctx: None if ctx.info.takes_tensors else "the op takes no tensor",
)
def noncontiguous(ctx, case):
    from opcheck_suite.inputs import tensors

    strided = any(not t.is_contiguous() for _, t in case.leaves() if tensors.strided(t))
    if ctx.spec.requires_contiguous and strided:
        if ctx.eager(case).error is None:
            ctx.fail("the spec claims requires_contiguous, but a strided input is accepted")
        return
    run = ctx.require(case)
    if not ctx.deterministic:
        ctx.skip("the op's values are random, so that only a crash could be seen")
    packed = ctx.require(case.packed())
    difference = ctx.compare(run.results(), packed.results())
    if difference:
        ctx.fail(f"the layout of an input changes the result: {difference}")
