"""Outputs are of the kinds that the schema declares."""

from opcheck_suite.registry import check

_KINDS = {"int": int, "float": float, "bool": bool, "str": str}


@check(
    id="schema.returns",
    title="Outputs are not what the schema declares",
    what="Compares number and type of the returned values with the schema's returns.",
    why=(
        "A None where a Tensor is declared, or a list where one tensor is, passes in eager and fails in the compiler,"
        " which builds code from the schema."
    ),
    fix="Return what the schema says, or declare what is returned: Tensor? may be None.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.define",
    tier="quick",
    failing_samples=True,
    variants=("sample", "resized", "ones", "empty", "arguments"),
)
def returns(ctx, case):
    declared = ctx.info.schema.returns
    if case.variant and ctx.attempt(ctx.sample_of(case)) is None:
        ctx.not_exercised("the op fails on the sample that this is derived from: see values.runs")
    if ctx.eager(case).error is not None and not case.variant:
        _returned_by_kernel(ctx, case, declared)
    run = ctx.require(case)
    outputs = [None] if run.out is None and len(declared) == 1 else run.outputs
    if len(outputs) != len(declared):
        ctx.fail(f"{len(outputs)} values are returned, the schema declares {len(declared)}")
    for n, (value, part) in enumerate(zip(outputs, declared, strict=True)):
        if not _fits(value, str(part.real_type)):
            ctx.fail(f"output {n} is {_word(value)}, the schema declares {part.type}")


def _returned_by_kernel(ctx, case, declared):
    """For a call that raised: what its Python kernel returned, which the dispatcher may have refused."""
    from opcheck_suite import pykernel

    kernel = pykernel.of(ctx, case)
    if kernel is None or not kernel.finished:
        return
    got = kernel.returned if isinstance(kernel.returned, tuple) else (kernel.returned,)
    if len(got) != len(declared) and declared:
        ctx.fail(f"the kernel returns {len(got)} values, the schema declares {len(declared)}, and every call raises")


def _fits(value, kind):
    import torch

    if kind.startswith("Optional["):
        return value is None or _fits(value, kind[len("Optional[") : -1])
    if kind.startswith("List["):
        return isinstance(value, list | tuple) and all(_fits(v, kind[len("List[") : -1]) for v in value)
    if kind == "Tensor":
        return isinstance(value, torch.Tensor)
    if kind in _KINDS:
        return isinstance(value, _KINDS[kind]) and not (kind != "bool" and isinstance(value, bool))
    return True


def _word(value):
    return "None" if value is None else f"of type {type(value).__name__}"
