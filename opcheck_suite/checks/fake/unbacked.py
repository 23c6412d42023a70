"""Fake kernels work for sizes that only data would tell."""

from opcheck_suite.registry import check


@check(
    id="fake.unbacked",
    title="The fake kernel branches on a size that may not be known",
    what=(
        "Calls the fake kernel with symbols without a value for sizes, as those of a tensor that nonzero returned, and "
        "looks whether Python code of the fake kernel asks for the truth of a condition on them. Conditions that "
        "fake.symbolic finds fault with are left to that check."
    ),
    why=(
        "torch.compile and torch.export stop with GuardOnDataDependentSymNode where the op comes after one whose output"
        " size depends on data, such as indexing with a mask."
    ),
    fix=(
        "Check sizes with torch._check(x.shape[0] % 8 == 0), one condition a call, which is put off until sizes are "
        "known; leave out special cases for empty inputs whose outputs come out right without them."
    ),
    docs=(
        "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/"
        "dynamic_shapes_troubleshooting_guardon_errors.html"
    ),
    tier="standard",
    severity="warn",
    scope="signature",
    applies=lambda ctx: (
        "the op takes no tensor"
        if not ctx.info.takes_tensors
        else "the op has no fake kernel in Python"
        if ctx.info.fake != "python"
        else None
    ),
)
def unbacked(ctx, case):
    from opcheck_suite import fakepairs, fakes
    from opcheck_suite.inputs import tensors

    ctx.require(case)
    if not all(tensors.strided(t) for _, t in case.leaves()):
        ctx.skip("an argument is no plain tensor")
    if ctx.info.returns_lists:
        ctx.skip("how many tensors are in a list must be decided by sizes")
    if ctx.fake(case).error is not None:
        ctx.not_exercised("the fake kernel raises: see fake.runs")
    if ctx.fake(case, symbolic=True).error is not None or fakepairs.specialisation(ctx, case):
        ctx.not_exercised("the fake kernel depends on the values of sizes: see fake.symbolic")
    run = fakes.unbacked(ctx.info.op, case)
    if not fakes.symbols(run):
        ctx.skip("no argument has a size above one")
    if (branch := fakes.branch(run)) is not None:
        ctx.fail(f"the fake kernel must know whether {branch.condition}: {branch.where}")
    if run.error is not None:
        ctx.skip(f"PyTorch itself asks for a size here: {ctx.describe_error(run.error)}")
