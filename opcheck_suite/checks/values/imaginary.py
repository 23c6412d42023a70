"""Imaginary parts are not lost."""

from opcheck_suite.registry import check


def _applies(ctx):
    if ctx.spec.reference is None:
        return "the spec has no reference"
    if not ctx.deterministic:
        return "the op's values are random"
    if not any(ctx.variants(sample, "complex") for sample in ctx.samples):
        return "no sample is of real floating-point numbers"
    return None


@check(
    id="values.imaginary",
    title="The imaginary part of complex numbers is lost",
    what=(
        "Calls the op, where its samples are of real numbers, on complex ones: the samples' with an imaginary part of "
        "up to half their size. Where op and reference both accept them, and agree without the imaginary part, an "
        "output that does not depend on it although the reference's does, or that is the conjugate of the "
        "reference's, is a failure. Other differences are a warning: nobody says that the op is for complex numbers."
    ),
    why=(
        "x.float(), copy_() into a real tensor and a kernel that looks at one number of each pair drop the imaginary "
        "part. At most a warning of the first call tells, and the result looks like any other."
    ),
    fix=(
        'Refuse complex numbers, with torch._check(not x.is_complex(), lambda: "expected real numbers"), or compute '
        "with them."
    ),
    docs="https://docs.pytorch.org/docs/stable/complex_numbers.html",
    tier="quick",
    variants=("complex",),
    applies=_applies,
)
def imaginary(ctx, case):
    from opcheck_suite import compare

    run = ctx.require(case)
    expected = ctx.reference(case)
    if expected is None:
        ctx.skip("the reference refuses complex numbers")
    wrong = [pair for pair in _pairs(run.results(), expected) if compare.roughly(*pair[1:], name=pair[0])]
    if not wrong:
        return
    (real,) = ctx.variants(ctx.sample_of(case), "real")
    plain, wanted = ctx.require(real), ctx.reference(real)
    if wanted is None or any(compare.roughly(a, b) for _, a, b in _pairs(plain.results(), wanted)):
        ctx.skip("op and reference differ without the imaginary part, too: see values.reference and values.dtypes")
    without = {name: (a, b) for name, a, b in _pairs(plain.results(), wanted)}
    for name, got, want in wrong:
        difference = compare.roughly(got, want, name=name)
        ours, theirs = without.get(name, (None, None))
        if theirs is None or theirs.shape != want.shape or compare.roughly(theirs, want) is None:
            ctx.skip("the reference does not depend on the imaginary part")
        if ours.shape == got.shape and compare.roughly(ours, got) is None:
            ctx.fail(f"the imaginary part of the input is lost: {difference}")
        if compare.roughly(got, want.conj()) is None:
            ctx.fail(f"{name} is the conjugate of what the reference computes: {difference}")
    name, got, want = wrong[0]
    ctx.warn(f"differs from the reference for complex numbers: {compare.roughly(got, want, name=name)}")


def _pairs(actual, expected):
    """Name, actual and expected tensor for the outputs that are numbers of one shape."""
    from opcheck_suite.inputs import tensors

    pairs = list(zip(tensors.tensors(actual), tensors.tensors(expected), strict=False))
    return [
        (f"output {n}" if len(pairs) > 1 else "the output", got, want)
        for n, (got, want) in enumerate(pairs)
        if got.shape == want.shape and want.numel() and tensors.numeric(got) and tensors.numeric(want)
    ]
