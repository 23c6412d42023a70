"""Outputs take part in the graph when, and only when, they have a gradient."""

from opcheck_suite.registry import check


@check(
    id="autograd.requires_grad",
    title="An output requires grad although it has no gradient",
    what=(
        "Looks at ops with several outputs: an output that requires grad while its gradient, of every argument, is "
        "zero; and at outputs that require grad although no argument does."
    ),
    why="Losses built on such an output train nothing, without an error.",
    fix="Call ctx.mark_non_differentiable(output) in setup_context, or return an integer tensor.",
    docs="https://docs.pytorch.org/docs/stable/notes/extending.html",
    tier="quick",
    applies=lambda ctx: ctx.no_gradients(),
)
def requires_grad(ctx, case):
    import torch

    from opcheck_suite import gradients
    from opcheck_suite.inputs import tensors

    plain = ctx.require(case)
    if any(t.requires_grad for t in tensors.tensors(plain.outputs)):
        ctx.fail("an output requires grad although no argument does")
    run = gradients.forward(ctx, case)
    if len(run.roots) < 2:
        return
    outs = tensors.tensors(run.outputs)
    for number in range(len(run.roots)):
        seeds = [s if n == number else torch.zeros_like(s) for n, s in enumerate(run.seeds())]
        grads = gradients.plain(ctx, run, seeds, retain_graph=True)
        if all(g is None or not bool(g.any()) for g in grads.values()):
            name = next(n for n, t in enumerate(outs) if t is run.roots[number])
            ctx.fail(f"output {name} requires grad, but its gradient is zero for every argument")
