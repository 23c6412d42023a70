"""The op respects that gradients are switched off."""

from opcheck_suite.registry import check


@check(
    id="dispatch.no_grad",
    title="The op fails, differs or records a graph under no_grad",
    what=(
        "Calls the op under torch.no_grad with floating-point arguments that require grad, as the weights of a model "
        "do, and compares with the ordinary call. No output in memory of its own may require grad."
    ),
    why=(
        "Evaluation loops run under no_grad to save memory. An output that requires grad keeps all of its graph, "
        "and everything computed from it does the same."
    ),
    fix="Return a detached tensor from where a kernel needs torch.enable_grad, and do not branch on requires_grad.",
    docs="https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html",
    tier="quick",
    applies=lambda ctx: None if ctx.info.takes_tensors else "the op takes no tensor",
)
def no_grad(ctx, case):
    import torch

    from opcheck_suite.inputs import tensors

    run = ctx.require(case)
    args, kwargs = case.inputs()
    given = [t for _, t in case.leaves((args, kwargs))]
    if not any(tensors.numeric(t) for t in given):
        ctx.skip("no argument of this sample is a floating-point tensor")
    for tensor in given:
        tensor.requires_grad_(tensors.numeric(tensor))
    with torch.no_grad():
        out = ctx.call(ctx.info.op, *args, what="the op, under torch.no_grad,", **kwargs)
    # A view of what requires grad does so, too, with torch's own ops: schema.aliasing is for ops that return views.
    made = [t for t in tensors.tensors(out) if not any(t is g or tensors.overlap(t, g) for g in given)]
    if any(t.requires_grad for t in made):
        if ctx.no_gradients() is None and any(t.requires_grad for t in tensors.tensors(run.outputs)):
            ctx.not_exercised("an output requires grad although no argument does: see autograd.requires_grad")
        ctx.fail("an output requires grad, although the op was called under torch.no_grad")
    results = case.results(out, case.leaves((args, kwargs)))
    if ctx.deterministic and (difference := ctx.compare(results, run.results())):
        ctx.fail(f"under torch.no_grad, with arguments that require grad, the result is another: {difference}")
