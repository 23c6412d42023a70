"""Backward leaves other tensors as they are."""

from opcheck_suite.registry import check


@check(
    id="autograd.purity",
    title="Backward changes a tensor that is not its own",
    what="Compares the incoming gradients, the arguments and the outputs before and after backward, bit by bit.",
    why=(
        "The incoming gradient is shared with other branches of the graph, and the saved tensors with the user: both "
        "see the change."
    ),
    fix="Compute out of place in backward, or on a clone.",
    docs="https://docs.pytorch.org/docs/stable/notes/extending.html",
    tier="quick",
    applies=lambda ctx: ctx.no_gradients(),
)
def purity(ctx, case):
    from opcheck_suite import compare, gradients
    from opcheck_suite.inputs import tensors

    run = gradients.forward(ctx, case)
    seeds = run.seeds()
    watched = [
        (f"the incoming gradient {n}" if len(seeds) > 1 else "the incoming gradient", s) for n, s in enumerate(seeds)
    ]
    watched += [(f"argument {name!r}", t) for name, t in case.leaves((run.args, run.kwargs))]
    watched += [(f"output {n}", t) for n, t in enumerate(tensors.tensors(run.outputs))]
    before = [(name, t, t.detach().clone()) for name, t in watched]
    gradients.plain(ctx, run, seeds)
    for name, tensor, was in before:
        if not compare.bitwise(tensor.detach(), was):
            ctx.fail(f"backward changes {name}")
