"""The result follows the values of the arguments, not their identity."""

from opcheck_suite.registry import check


@check(
    id="values.stale",
    title="The result is that of an earlier call",
    what=(
        "Calls the op, writes other values into the same tensors in place (as an optimizer does), calls it again, and "
        "compares with the call on fresh tensors that hold those values."
    ),
    why=(
        "An op that remembers what it made of a tensor, such as packed weights, by its address or identity goes on to "
        "compute with values that are no longer there. After a training step, or when an allocator hands out the "
        "address again, results are wrong without an error."
    ),
    fix=(
        "Let the caller keep what is worth keeping, as an argument of its own. At least make Tensor._version part of "
        "the key, and drop an entry with its tensor (torch.utils.weak.WeakTensorKeyDictionary)."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks",
    tier="standard",
    scope="signature",
    applies=lambda ctx: (
        "the op's values are random"
        if not ctx.deterministic
        else None
        if ctx.info.takes_tensors
        else "the op takes no tensor"
    ),
)
def stale(ctx, case):
    from opcheck_suite import alternatives, context

    others = alternatives.of(ctx, case)
    if not others:
        ctx.skip("the op refuses other values than this sample's, or gives the same result for them")
    inputs = case.inputs()
    _results(ctx, case, inputs)
    if not alternatives.write(case, inputs, others[0]):
        ctx.skip("an argument was given another shape, or its elements share memory, so that it cannot be written to")
    try:
        second = _results(ctx, case, inputs)
    except context.OpRaised as raised:
        ctx.skip(f"the op refuses a tensor that was written to since an earlier call: {raised}")
    difference = ctx.compare(second, ctx.require(others[0]).results())
    if not difference:
        return
    if not alternatives.write(case, inputs, others[0]) or ctx.compare(_results(ctx, case, inputs), second):
        ctx.skip("a third call gives yet another result: see values.repeatable")
    names = [name for name, _ in case.leaves() if _remembered(ctx, case, others[0], name)]
    what = f"the earlier values of argument {', '.join(map(repr, names))} are used" if names else "they are not used"
    ctx.fail(f"called again with other values written into the same tensors, {what}: {difference}")


def _remembered(ctx, case, other, name):
    """Whether the earlier values of one argument alone are used again."""
    from opcheck_suite import alternatives

    changed = case.replace({name: dict(other.leaves())[name]}, variant=f"{other.variant}({name})", group="content")
    run, inputs = ctx.attempt(changed), case.inputs()
    earlier = _results(ctx, case, inputs)
    return (
        run is not None
        and ctx.compare(run.results(), earlier) is not None
        and alternatives.write(case, inputs, changed)
        and ctx.compare(_results(ctx, case, inputs), earlier) is None
    )


def _results(ctx, case, inputs):
    """Copies of outputs and written arguments of a call on the given tensors."""
    from opcheck_suite import context
    from opcheck_suite.inputs import tensors

    args, kwargs = inputs
    out = ctx.call(ctx.info.op, *args, **kwargs)
    return tensors.map_tensors(
        lambda t: t.detach().clone(), context.Run(case, args, kwargs, [], out, None, []).results()
    )
