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
        "tolerance of the coarser dtype. The op may refuse a dtype."
    ),
    why=(
        "A kernel that casts a pointer without looking at the dtype reads bits as other numbers, and returns garbage "
        "without an error."
    ),
    fix="Dispatch on scalar_type() (AT_DISPATCH_...), or refuse with TORCH_CHECK(x.scalar_type() == at::kFloat, ...).",
    docs="https://docs.pytorch.org/tutorials/advanced/cpp_custom_ops.html",
    tier="quick",
    variants=("floats", "integers", "complex"),
    applies=_applies,
)
def dtypes(ctx, case):
    import torch

    from opcheck_suite.inputs import tensors

    run = ctx.require(case)
    wide = {n: torch.real(t.detach()).float().contiguous() for n, t in case.leaves() if _changed(ctx, case, n, t)}
    packed = case.replace(wide, variant=f"{case.variant} as float32", group="packed")
    expected = ctx.require(packed)
    coarse = (torch.bfloat16, torch.float16)
    low = any(t.dtype in coarse for _, t in case.leaves()) or any(
        t.dtype in coarse for t in tensors.tensors(run.results())
    )
    rtol, atol = (0.05, 0.05) if low else (1e-3, 1e-4)
    pairs = zip(tensors.tensors(run.results()), tensors.tensors(expected.results()), strict=False)
    for n, (got, want) in enumerate(pairs):
        if case.group == "complex" and (got.shape != want.shape or want.is_complex()):
            continue  # a transform may return half of what it returns for complex numbers
        if got.shape != want.shape:
            ctx.fail(f"output {n} has shape {tuple(got.shape)}, in float32 {tuple(want.shape)}")
        if not want.is_floating_point() or not want.numel() or (got.is_complex() and case.group != "complex"):
            continue
        whole = got.dtype in (torch.int32, torch.int64)
        if not (got.is_floating_point() or got.is_complex() or whole):
            continue
        precise = torch.complex128 if got.is_complex() else torch.float64
        a, b = got.detach().to(precise), want.detach().to(precise)
        if whole:
            b = b.trunc()
        finite = torch.isfinite(a) & torch.isfinite(b) & (b.abs() < 6e4)
        scale = float(b[finite].abs().max()) if finite.any() else 0.0
        slack = atol * max(1.0, scale) + (1 if whole else 0)
        difference = ctx.compare(a[finite], b[finite], names=f"output {n}", tolerances=(rtol, slack))
        if difference:
            ctx.fail(f"differs from the call in float32: {difference}")


def _changed(ctx, case, name, t):
    """Whether the variant gave this argument another dtype than the sample has."""
    original = dict(ctx.sample_of(case).leaves())
    return name in original and original[name].dtype != t.dtype
