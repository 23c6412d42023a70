"""Backward works when only some arguments require grad."""

from opcheck_suite.registry import check


@check(
    id="autograd.subsets",
    title="The gradient changes with what else requires grad",
    what=(
        "Asks for the gradient of each argument alone, and compares with asking for all of them; one output alone, too."
    ),
    why=(
        "Frozen weights and constant inputs are the rule. Backward must look at ctx.needs_input_grad, and take None "
        "for outputs."
    ),
    fix="Compute what needs_input_grad asks for, return None for the rest, and treat a gradient of None as zero.",
    docs="https://docs.pytorch.org/docs/stable/notes/extending.html",
    tier="quick",
    applies=lambda ctx: ctx.no_gradients(),
)
def subsets(ctx, case):
    from opcheck_suite import gradients

    full = gradients.forward(ctx, case)
    expected = gradients.plain(ctx, full, full.seeds())
    if len(full.leaves) > 1:
        for name in full.leaves:
            alone = gradients.forward(ctx, case, only=(name,))
            got = gradients.run(ctx, alone.backward, alone.seeds(), what=f"backward, for {name!r} alone,")
            difference = ctx.compare([got[name]], [expected[name]], names=f"the gradient of {name!r}")
            if difference:
                ctx.fail(f"for {name!r} alone: {difference}")
    for n in range(len(full.roots) if len(full.roots) > 1 else 0):
        _one_output(ctx, case, n)


def _one_output(ctx, case, number):
    import torch

    from opcheck_suite import gradients

    zeros = gradients.forward(ctx, case)
    seeds = [s if n == number else torch.zeros_like(s) for n, s in enumerate(zeros.seeds())]
    expected = gradients.run(ctx, zeros.backward, seeds)
    single = gradients.forward(ctx, case)
    names = list(single.leaves)
    root, seed = single.roots[number], seeds[number]

    def backward():
        return torch.autograd.grad([root], [single.leaves[n] for n in names], [seed], allow_unused=True)

    got = gradients.run(ctx, backward, what=f"backward from output {number} alone")
    for name, grad in zip(names, got, strict=True):
        a = torch.zeros_like(single.leaves[name]) if grad is None else grad
        b = torch.zeros_like(single.leaves[name]) if expected[name] is None else expected[name]
        if difference := ctx.compare([a], [b], names=f"the gradient of {name!r}"):
            ctx.fail(f"from output {number} alone: {difference}")
