"""Other dtypes are computed or refused."""

from opcheck_suite.registry import check


def _applies(ctx):
    if not ctx.deterministic:
        return "the op's values are random"
    if not any(ctx.variants(sample, "floats") for sample in ctx.samples):
        return "no sample has a floating-point tensor"
    return None


@check(
    id="values.dtypes",
    title="Another dtype gives wrong values",
    what=(
        "Calls the op with its floating-point arguments in other dtypes (float64, bfloat16, float16, int32, and "
        "complex64 without an imaginary part) and compares with the call on the same numbers in float32, within the "
        "tolerance of the coarser dtype; and so with the first of several in bfloat16 beside the others. Complex "
        "numbers in complex64 are compared with the same in complex128. The op may refuse a dtype; and a mixture, "
        "unless it takes each dtype alone, and both its fake kernel and the reference take the mixture."
    ),
    why=(
        "A kernel that casts a pointer without looking at the dtype reads bits as other numbers, and returns garbage "
        "without an error."
    ),
    fix=(
        "Dispatch on scalar_type() (AT_DISPATCH_...), or refuse with TORCH_CHECK(x.scalar_type() == at::kFloat, ...), "
        "in the fake kernel as well."
    ),
    docs="https://docs.pytorch.org/tutorials/advanced/cpp_custom_ops.html",
    tier="quick",
    variants=("floats", "mixed", "integers", "complex", "real"),
    applies=_applies,
)
def dtypes(ctx, case):
    import torch

    from opcheck_suite import compare
    from opcheck_suite.inputs import tensors

    if case.group == "mixed" and _alone_in_refusing(ctx, case):
        error = ctx.describe_error(ctx.eager(case).error)
        ctx.fail(f"the op refuses dtypes together that its fake kernel and the reference take: {error}")
    run = ctx.require(case)
    other = "complex128" if case.group == "complex" else "float32"
    expected = ctx.require(_in_other(ctx, case, getattr(torch, other)))
    coarse = (torch.bfloat16, torch.float16)
    low = any(t.dtype in coarse for _, t in case.leaves()) or any(
        t.dtype in coarse for t in tensors.tensors(run.results())
    )
    rtol, atol = (0.05, 0.05) if low else (1e-3, 1e-4)
    pairs = zip(tensors.tensors(run.results()), tensors.tensors(expected.results()), strict=False)
    for n, (got, want) in enumerate(pairs):
        if case.group == "real" and (got.shape != want.shape or want.is_complex()):
            continue  # a transform may return half of what it returns for complex numbers
        if got.shape != want.shape:
            ctx.fail(f"output {n} has shape {tuple(got.shape)}, in {other} {tuple(want.shape)}")
        if not tensors.numeric(want) or not want.numel():
            continue
        if (got.is_complex() or want.is_complex()) and case.group not in ("real", "complex"):
            continue
        whole = got.dtype in (torch.int32, torch.int64) and want.is_floating_point()
        if not (tensors.numeric(got) or whole):
            continue
        got, want = (got.double(), want.trunc()) if whole else (got, want)
        difference = compare.roughly(got, want, rtol=rtol, atol=atol, name=f"output {n}", slack=float(whole))
        if difference:
            ctx.fail(f"differs from the call in {other}: {difference}")


def _alone_in_refusing(ctx, case):
    """Whether the op refuses a mixture of dtypes that it takes one by one, and that all who speak of it take."""
    if ctx.eager(case).error is None or ctx.spec.reference is None or ctx.reference(case) is None:
        return False
    low = next((v for v in ctx.variants(ctx.sample_of(case), "floats") if v.variant == "bfloat16"), None)
    if low is None or ctx.attempt(low) is None:
        return False
    fake = ctx.fake(case)
    return not fake.unsupported and fake.error is None


def _in_other(ctx, case, dtype):
    """The case with the dtype that its values are compared in, for all arguments that the variant gave another one."""
    import torch

    from opcheck_suite.inputs import tensors

    original = dict(ctx.sample_of(case).leaves())
    changed = {n: t.detach() for n, t in case.leaves() if n in original and original[n].dtype != t.dtype}
    plain = {n: t if dtype.is_complex else torch.real(t) for n, t in changed.items()}
    changes = {n: t.to(dtype).contiguous() for n, t in plain.items()}
    return case.replace(changes, variant=f"{case.variant} as {tensors.dtype_name(dtype)}", group="packed")
