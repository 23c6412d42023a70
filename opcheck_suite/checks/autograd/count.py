"""The formula returns one gradient for each argument."""

from opcheck_suite.registry import check


@check(
    id="autograd.count",
    title="The formula returns another number of gradients than there are arguments",
    what="Counts what the function given to register_autograd returns.",
    why="Some versions of torch forgive a None too many, others raise: the op breaks with an update.",
    fix="Return one value for each argument of the op, None for those without a gradient.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autograd",
    tier="quick",
    scope="signature",
    applies=lambda ctx: (
        ctx.no_gradients()
        or (None if ctx.info.definition is not None else "the op was not made by torch.library.custom_op")
    ),
)
def count(ctx, case):
    from opcheck_suite import gradients

    definition = ctx.info.definition
    formula = definition._backward_fn
    seen = []

    def counting(*args):
        result = formula(*args)
        seen.append(len(result) if isinstance(result, tuple) else 1)
        return result

    definition._backward_fn = counting
    try:
        run = gradients.forward(ctx, case)
        gradients.plain(ctx, run, run.seeds())
    finally:
        definition._backward_fn = formula
    wanted = sum(not a.kwarg_only for a in ctx.info.schema.arguments)
    if seen and seen[0] != wanted:
        ctx.fail(f"the formula returns {seen[0]} gradients, the op has {wanted} arguments")
    if not seen:
        ctx.not_exercised("the formula was not called")
