"""The device computes what the CPU computes."""

from opcheck_suite.registry import check


def _applies(ctx):
    if ctx.device == "cpu":
        return "the run is on the CPU: --device names another"
    if not ctx.info.serves("cpu") or "cpu" not in (ctx.spec.devices or ("cpu",)):
        return "the op has no kernel for the CPU, or its spec claims none"
    return None if ctx.deterministic else "the op's values are random"


@check(
    id="device.parity",
    title="The device and the CPU give different results",
    what=(
        "Calls the op on copies of the sample on the CPU, and compares outputs and mutated arguments. Devices add in "
        "other orders and use narrower units, so the comparison is as wide as the square root of the dtype's "
        "precision, relative to the largest element, unless the spec has tolerances or rounding from the reference "
        "explains a difference."
    ),
    why="The kernel for the device is another program than the one for the CPU, and tests often run only one of them.",
    fix="Compare the kernels on the element named: strides, tails, the dtype of sums and of intermediate results.",
    docs="https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html",
    tier="quick",
    applies=_applies,
)
def parity(ctx, case):
    import torch

    from opcheck_suite import rounding
    from opcheck_suite.inputs import tensors

    run = ctx.require(case)
    args, kwargs = tensors.fresh((case.args, case.kwargs), device="cpu")
    if any(isinstance(value, torch.device | torch.Generator) for value in case.bound().values()):
        ctx.skip("an argument names a device")
    try:
        with ctx.seeded():
            out = ctx.info.op(*args, **kwargs)
    except Exception as error:
        ctx.skip(f"on the CPU the op refuses the sample: {ctx.describe_error(error)}")
    actual, expected = run.results(), case.results(out, case.leaves((args, kwargs)))
    difference = ctx.compare(actual, expected)
    if difference is None:
        return
    if ctx.spec.tolerances is None:
        known = ctx.reference(case) if ctx.spec.reference is not None else None
        if known is not None and rounding.explains(ctx, case, actual, known):
            return
        difference = ctx.compare(actual, expected, tolerances=_wide(expected))
    if difference:
        ctx.fail(f"on {ctx.device} the result is another than on the CPU: {difference}")


def _wide(expected):
    """Tolerances for sums in any order, and for units that keep half of the digits (TF32)."""
    import torch

    from opcheck_suite.inputs import tensors

    found = [t for t in tensors.tensors(expected) if tensors.numeric(t)]
    if not found:
        return None
    step = 4 * max(torch.finfo(t.dtype).eps for t in found) ** 0.5
    finite = [t[torch.isfinite(t)].abs() for t in found if t.element_size() > 1]
    return step, step * max([1.0, *(float(t.max()) for t in finite if t.numel())])
