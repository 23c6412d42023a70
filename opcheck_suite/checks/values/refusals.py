"""What the reference refuses, the op refuses."""

from opcheck_suite.registry import check


def _applies(ctx):
    if ctx.spec.reference is None:
        return "the spec has no reference"
    if not any(ctx.variants(sample, "indices") for sample in ctx.samples):
        return "no sample has an integer tensor beside a floating-point one"
    return None


@check(
    id="values.refusals",
    title="The op computes with what its reference refuses",
    what="Puts a position beyond every size into integer arguments; where the reference raises, the op must raise.",
    why="Memory beyond the tensor is read or written: wrong numbers today, a crash or a leak tomorrow.",
    fix="Check positions with TORCH_CHECK_INDEX before they are used, at least in debug builds.",
    docs="https://docs.pytorch.org/tutorials/advanced/cpp_custom_ops.html",
    tier="quick",
    variants=("indices",),
    applies=_applies,
)
def refusals(ctx, case):
    if ctx.reference(case) is not None:
        ctx.skip("the reference accepts it")
    if ctx.eager(case).error is None:
        ctx.fail("the reference refuses this call, the op computes a result")
