"""The op computes what its reference computes."""

from opcheck_suite.registry import check


@check(
    id="values.reference",
    title="Wrong values",
    what=(
        "Compares outputs and mutated arguments with those of the spec's reference, on samples and on samples of "
        "other sizes. A difference that rounding explains is none: where the result is beyond torch.testing's "
        "tolerances, the reference is evaluated in float64, on the inputs and on inputs moved by one rounding error, "
        "and the result must be as near to the first as the second are. The spec's tolerances hold as they are."
    ),
    why="A kernel can be right for the sizes it was written with, and wrong for a tail, a prime size or a single row.",
    fix=(
        "Look at the element named: a block's remainder, an index computed in 32 bits and a missing barrier are usual"
        " causes."
    ),
    docs="https://docs.pytorch.org/docs/stable/testing.html#torch.testing.assert_close",
    tier="quick",
    variants=("sample", "resized", "ones", "large", "broadcast", "arguments", "content", "special", "floats"),
    applies=lambda ctx: (
        "the spec has no reference"
        if ctx.spec.reference is None
        else None
        if ctx.deterministic
        else "the op's values are random"
    ),
)
def reference(ctx, case):
    if case.group == "floats" and case.variant not in ("float64", "float32"):
        ctx.skip("values.dtypes judges coarse dtypes against float32")
    from opcheck_suite import rounding

    run = ctx.require(case)
    expected = ctx.reference(case)
    if expected is None:
        ctx.skip("the reference refuses this input")
    growth = _elements(case) / max(1, _elements(ctx.sample_of(case))) if case.group == "large" else 1.0
    difference = ctx.compare(run.results(), expected, growth=growth)
    if difference and not (ctx.spec.tolerances is None and rounding.explains(ctx, case, run.results(), expected)):
        ctx.fail(f"the result differs from the reference: {difference}")


def _elements(case):
    return sum(t.numel() for _, t in case.leaves())
