"""Programs that call the op can be compiled ahead of time, and the package computes the same."""

from opcheck_suite.registry import check


@check(
    id="export.aotinductor",
    title="A package compiled by AOTInductor differs",
    what=(
        "Compiles calls of the op on its samples, each beside a pointwise step, to a package with open sizes "
        "(aoti_compile_and_package), loads it, and compares what it computes with the op, at the samples' sizes and at "
        "others. For ops with a kernel in C++ or CUDA, in the first dtype; it takes a C++ compiler about 10 s."
    ),
    why=(
        "A package is how an op runs without Python. Its code computes with the sizes and strides that the fake kernel "
        "promised and checks none of them: a wrong one means wrong numbers or reads beyond the end."
    ),
    fix=(
        "Look at what export.roundtrip and fake.strides find first. Strides must follow from sizes as they do in the "
        "kernel, also where sizes are symbols."
    ),
    docs="https://docs.pytorch.org/docs/stable/torch.compiler_aot_inductor.html",
    tier="full",
    scope="op",
    applies=lambda ctx: (
        ctx.not_functional()
        or (
            "the op is decomposed, so that it is not in a package"
            if ctx.info.transparent
            else f"packages are compiled for the first dtype only, {ctx.spec.dtypes[0]}"
            if ctx.spec.dtypes and ctx.dtype is not ctx.spec.dtypes[0]
            else None
        )
    ),
)
def aotinductor(ctx):
    from opcheck_suite import exporting, pykernel

    if pykernel.first(ctx) is not None:
        ctx.skip("the kernel is in Python, and a package is to run without it; inside Python, compile.parity holds")
    cases = _cases(ctx)
    try:
        with exporting.packaged(ctx, cases) as calls:
            for case, call in zip(cases, calls, strict=True):
                _compare(ctx, case, call)
    except exporting.NoCompiler as reason:
        ctx.skip(f"torch finds no C++ compiler: {reason}")
    except exporting.NotPackaged as reason:
        ctx.skip(f"torch cannot make a package of the call: {reason}")


def _cases(ctx):
    """The first sample of each signature that can be exported. Ends the check where there is none."""
    from opcheck_suite import exporting
    from opcheck_suite.context import NotExercised, Verdict

    chosen, why = {}, NotExercised("the op has no samples")
    for case in ctx.samples:
        if case.signature() in chosen:
            continue
        try:
            exporting.settled(ctx, case)
            if any(isinstance(out, int | float) for out in ctx.require(case).outputs):
                ctx.skip("a package returns tensors only, and the op numbers")
        except Verdict as verdict:
            why = verdict
            continue
        chosen[case.signature()] = case
    if not chosen:
        raise why
    return list(chosen.values())


def _compare(ctx, case, package):
    """End the check where the package differs from eager on a case, or on the case at other sizes."""
    from opcheck_suite import exporting

    found = exporting.settled(ctx, case)
    # A package holds for the strides it was compiled with, and variants in size are contiguous.
    plain = all(t.is_contiguous() for _, t in case.leaves())
    for made in [case, *(exporting.other_sizes(ctx, case, found) if plain else [])]:
        if exporting.observe(ctx, made, found.call).error is not None:
            continue  # export.dynamic reports sizes that the program refuses
        if text := exporting.difference(ctx, made, exporting.observe(ctx, made, package)):
            ctx.fail(f"the package differs from the op on {made.label}: {text}\ncall    {made.describe()}")
