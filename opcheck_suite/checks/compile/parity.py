"""Compiled and eager calls agree."""

from opcheck_suite.registry import check

BACKENDS = ("eager", "aot_eager", "inductor")


@check(
    id="compile.parity",
    title="Compiled and eager calls differ",
    what=(
        "Compiles a call of the op with backends eager, aot_eager and inductor, and compares outputs, mutated "
        "arguments and, for differentiable ops, gradients with those of an eager call. The tolerance is that of the "
        "coarsest dtype among arguments and outputs, since a compiler may keep intermediate results in float32."
    ),
    why=(
        "A schema or fake kernel that is not true of the op makes the compiler generate code that computes something "
        "else, mostly without an error."
    ),
    fix=(
        "The first backend that differs says where: eager is Dynamo, aot_eager adds functionalization and autograd, "
        "inductor adds generated code. Look at schema.* and fake.* first."
    ),
    docs="https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html",
    tier="standard",
    scope="signature",
)
def parity(ctx, case):
    from opcheck_suite import compare, compilepairs

    compilepairs.ready(ctx, case)
    expected = compilepairs.eager(ctx, case)
    if not ctx.deterministic:
        ctx.skip("the op's values are random")
    coarse = compare.coarsest([case.args, case.kwargs, expected.results])
    for backend in BACKENDS:
        got = compilepairs.compiled(ctx, case, backend)
        if got.error is not None:
            if backend != "eager" and (ctx.info.returns_alias or "alias annotations" in str(got.error)):
                limit = "torch does not functionalize ops whose outputs alias arguments"
                ctx.skip(f"agrees with backend eager; {limit} ({backend})")
            if "FallbackKernel output type" in str(got.error):
                ctx.skip("agrees with other backends; Inductor has no place for a number that an op returns")
            ctx.fail(f"backend {backend} raised {ctx.describe_error(got.error)}")
        difference = ctx.compare(got.results, expected.results, coarse=coarse)
        if difference:
            ctx.fail(f"backend {backend} gives another result: {difference}{_tolerance(ctx, coarse)}")
        for name, grad in expected.gradients.items():
            names = f"the gradient of {name!r}"
            difference = ctx.compare([got.gradients.get(name)], [grad], names=names, coarse=coarse)
            if difference:
                ctx.fail(f"backend {backend} gives another gradient: {difference}{_tolerance(ctx, coarse)}")


def _tolerance(ctx, coarse):
    """A word on the tolerance, where it is that of a dtype of half precision."""
    if coarse is None or ctx.spec.tolerances is not None or coarse.itemsize > 2:
        return ""
    return f" (compared as {str(coarse).removeprefix('torch.')})"
