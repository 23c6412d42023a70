"""The fake kernel refuses what the op refuses."""

import re

from opcheck_suite.registry import check

#: Words of refusals that say that there is nothing in an input.
_EMPTY = re.compile(r"numel\(\) == 0|\bempty|\b(0|no) elements?|size 0\b|zero[- ]size|no identity", re.IGNORECASE)


@check(
    id="fake.refusals",
    title="The fake kernel accepts what the op refuses",
    what=(
        "Derives inputs of other sizes, in float32 and in float64; where the op raises, the fake kernel must raise as "
        "well. So it must for scalars, where the op takes tensors of more dimensions, works on each element or keeps "
        "the shape, and meets an IndexError on them. "
        "Inputs with integer tensors are left out, since the op may refuse their values, which a fake kernel "
        "cannot see."
    ),
    why=(
        "torch.compile and torch.export accept such a call; the error comes when the compiled program runs, far from "
        "the line that is wrong, or after export not at all on the machine that exported."
    ),
    fix=(
        "Check shapes and dtypes with torch._check in the fake kernel as the kernel does; share one function between "
        "them."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
    variants=("resized", "empty", "floats", "ranks"),
    applies=lambda ctx: (
        "the op takes no tensor"
        if not ctx.info.takes_tensors
        else None
        if ctx.info.fake in ("python", "meta")
        else "the op has no fake kernel of its own"
    ),
)
def refusals(ctx, case):
    from opcheck_suite.inputs import sizes

    if case.group != "floats" and not sizes.plain(case):
        ctx.skip("the op may refuse the values of an integer argument")
    if case.group == "empty" and "dim 0" not in case.variant:
        ctx.skip("reductions over no element are refused by PyTorch's own ops, too")
    if case.uncertain:
        ctx.skip("the op may rely on what was changed")
    if case.group != "floats" and not _all_changed(ctx, case):
        ctx.skip("one of several arguments has another size: what the op demands between them is not known")
    if case.group == "floats" and case.variant not in ("float64", "float32"):
        ctx.skip("many ops leave out the half-precision dtypes")
    run = ctx.eager(case)
    if run.error is None:
        return
    if case.group == "ranks" and not _scalar_forgotten(ctx, case, run.error):
        ctx.skip("the op may be meant for tensors of certain ranks")
    if case.group == "empty" and _EMPTY.search(str(run.error)):
        ctx.skip("the op says clearly that it takes no empty input")
    if _no_instance(run.error):
        ctx.skip("the kernel has no instance for the dtype; that of another device may")
    if ctx.fake(case).error is None and not ctx.fake(case).unsupported:
        ctx.fail(f"the op refuses this call, the fake kernel does not: {ctx.describe_error(run.error)}")


def _no_instance(error):
    """Whether torch's own macros and accessors refuse a dtype in a kernel, and not a check that the op makes."""
    return "not implemented for '" in str(error) or "expected scalar type" in str(error)


def _scalar_forgotten(ctx, case, error):
    """Whether an op takes tensors with more dimensions, and on scalars indexes sizes that are not there."""
    more = [v for v in ctx.variants(ctx.sample_of(case), "ranks") if v.variant != case.variant]
    if not isinstance(error, IndexError) or not more or any(ctx.eager(v).error is not None for v in more):
        return False
    # A shape that was indexed as a tuple is no refusal: torch words it otherwise where an op asks for a dimension.
    by_accident = "tuple index out of range" in str(error)
    alike = by_accident and all(_keeps_shape(ctx, v) for v in (ctx.sample_of(case), *more))
    return alike or _elementwise(ctx, ctx.sample_of(case))


def _keeps_shape(ctx, case):
    """Whether the op takes one tensor and all that it returns has its shape: an op for tensors of any rank."""
    from opcheck_suite.inputs import tensors

    given = [t for _, t in case.leaves()]
    outputs = tensors.tensors(ctx.require(case).outputs)
    return len(given) == 1 and bool(outputs) and all(t.shape == given[0].shape for t in outputs)


def _elementwise(ctx, sample):
    """Whether the op gives the same elements when it is called on vectors: dimensions mean nothing to it then."""
    from opcheck_suite.inputs import tensors

    flat = sample.map(lambda t: t.detach().reshape(-1), variant="vectors", group="ranks")
    run = ctx.attempt(flat)
    if run is None:
        return False
    pairs = zip(tensors.tensors(run.results()), tensors.tensors(ctx.require(sample).results()), strict=False)
    return all(a.numel() == b.numel() and ctx.compare([a], [b.reshape(-1)]) is None for a, b in pairs)


def _all_changed(ctx, case):
    """Whether every tensor with dimensions has another shape than in the sample."""
    original = dict(ctx.sample_of(case).leaves())
    return all(t.shape != original[name].shape for name, t in case.leaves() if original[name].dim())
