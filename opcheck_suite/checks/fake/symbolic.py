"""Fake kernels hold for other sizes than the ones they were tried with."""

from opcheck_suite.registry import check


@check(
    id="fake.symbolic",
    title="The fake kernel depends on the values of sizes",
    what=(
        "Calls the fake kernel with symbols for sizes, and for arguments declared SymInt, and collects the conditions "
        "that it relied on. A condition is a "
        "failure when the op accepts sizes that violate it; conditions that the op itself demands are right."
    ),
    why=(
        "Every condition is a guard: torch.compile compiles again when it fails, or turns a dynamic size into a "
        "constant, and torch.export refuses the dimension."
    ),
    fix=(
        "Do not call int() on sizes or branch on them in the fake kernel; in C++ use sym_sizes() and empty_symint, "
        "and not sizes() or guard_int."
    ),
    docs="https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html",
    tier="quick",
    scope="signature",
)
def symbolic(ctx, case):
    from opcheck_suite import fakepairs, fakes

    ctx.require(case)
    if ctx.fake(case).error is not None:
        ctx.not_exercised("the fake kernel raises: see fake.runs")
    run = ctx.fake(case, symbolic=True)
    if run.unsupported:
        ctx.skip(f"fake tensors cannot stand for this input: {run.unsupported}")
    if run.error is not None:
        ctx.fail(f"with symbols for sizes the fake kernel raises {ctx.describe_error(run.error)}")
    if not fakes.symbols(run):
        ctx.skip("no argument has a size above one")
    if text := fakepairs.specialisation(ctx, case):
        ctx.fail(text)
