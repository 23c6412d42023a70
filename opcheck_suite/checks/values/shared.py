"""Arguments may have memory in common."""

from opcheck_suite.registry import check


def _applies(ctx):
    if not ctx.deterministic:
        return "the op's values are random"
    if not any(ctx.variants(sample, "shared") for sample in ctx.samples):
        return "no sample has two floating-point arguments of one shape and dtype that the op only reads"
    return None


@check(
    id="values.shared",
    title="Arguments that share memory change the result",
    what=(
        "Calls the op with one tensor for several arguments, and with two overlapping views of one tensor, and "
        "compares with the call on copies. Arguments that are written are left alone."
    ),
    why=(
        "f(x, x) and f(x[:-1], x[1:]) are ordinary calls. A kernel that uses an argument as scratch space, or tells "
        "arguments apart by the address of their storage, returns wrong numbers for them."
    ),
    fix=(
        "Write to memory of the kernel's own, and look for tensors by data_ptr() together with size and stride, or not "
        "at all."
    ),
    docs="https://docs.pytorch.org/docs/stable/tensor_view.html",
    tier="standard",
    variants=("shared",),
    applies=_applies,
)
def shared(ctx, case):
    import torch

    run = ctx.require(case)
    expected = ctx.require(case.packed())
    # Where equal numbers are subtracted, rounding is left, of which a root may have been taken.
    leaves = [t.detach() for _, t in case.leaves() if t.is_floating_point() and t.numel()]
    rounding = max((torch.finfo(t.dtype).eps for t in leaves), default=0.0) ** 0.5
    largest = max((float(t.abs().nan_to_num(0, 0, 0).max()) for t in leaves), default=0.0)
    tolerances = ctx.spec.tolerances or (4 * rounding, 4 * rounding * max(1.0, largest))
    difference = ctx.compare(run.results(), expected.results(), tolerances=tolerances)
    if difference:
        ctx.fail(f"the result differs from that of a call on copies: {difference}")
