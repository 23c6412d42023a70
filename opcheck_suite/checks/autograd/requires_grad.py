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
    scope="op",
    applies=lambda ctx: ctx.no_gradients(),
)
def requires_grad(ctx):
    silent, looked = {}, False
    for case in ctx.samples:
        plain = ctx.attempt(case)
        if plain is None:
            continue
        _none_requires(ctx, plain)
        looked = True
        for name, zero in _zero_gradients(ctx, case).items():
            silent[name] = silent.get(name, True) and zero
    if not looked:
        ctx.not_exercised("the op accepts no sample")
    for name, zero in silent.items():
        if zero:
            ctx.fail(f"output {name} requires grad, but on every sample its gradient is zero for every argument")


def _none_requires(ctx, plain):
    from opcheck_suite.inputs import tensors

    if any(t.requires_grad for t in tensors.tensors(plain.outputs)):
        ctx.fail("an output requires grad although no argument does")


def _zero_gradients(ctx, case):
    """Number of the output -> whether its gradient is zero for every argument. Empty for a single output."""
    import torch

    from opcheck_suite import compilepairs, gradients
    from opcheck_suite.inputs import tensors

    if not compilepairs.gradient_leaves(ctx, case):
        return {}
    run = gradients.forward(ctx, case)
    outs = tensors.tensors(run.outputs)
    found = {}
    for number, root in enumerate(run.roots if len(run.roots) > 1 else []):
        seeds = [s if n == number else torch.zeros_like(s) for n, s in enumerate(run.seeds())]
        grads = gradients.plain(ctx, run, seeds, retain_graph=True)
        name = next(n for n, t in enumerate(outs) if t is root)
        found[name] = all(g is None or not bool(g.any()) for g in grads.values())
    return found
