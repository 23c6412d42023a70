"""vmap gives what a loop gives."""

from opcheck_suite.registry import check


@check(
    id="transform.vmap",
    title="vmap differs from a loop",
    what=(
        "Maps the op over a new dimension of its tensor arguments: all of them, each alone, dimension last, and "
        "arguments of fewer dimensions beside others; compares with a loop. Random ops and ops that write are "
        "compared only where a batching rule is registered."
    ),
    why=(
        "A batching rule that does not line up dimensions broadcasts the batch against the data: wrong numbers, no "
        "error."
    ),
    fix="In the rule, move the batch dimension to the front of every argument and pad ranks before calling the op.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_vmap",
    tier="quick",
    scope="signature",
    variants=("sample", "broadcast"),
    applies=lambda ctx: (
        "the op takes no tensor"
        if not ctx.info.takes_tensors
        else "the op's values are random"
        if not ctx.deterministic
        else None
    ),
)
def vmap(ctx, case):
    from opcheck_suite import mapped

    ctx.require(case)
    names = mapped.leaves(case)
    if not names:
        ctx.skip("the sample gives no plain tensor")
    if ctx.info.vmap is None:
        if ctx.info.mutated:
            if set(names) <= set(ctx.info.mutated):
                ctx.warn("no batching rule is registered: vmap raises, as torch has no fallback for ops that write")
            ctx.skip("no batching rule is registered, and torch has no fallback for ops that write to arguments")
        ctx.skip("no batching rule is registered, so torch loops over the op by itself")
    for chosen, dim in mapped.choices(names):
        text = mapped.difference(ctx, case, chosen, dim)
        if text:
            where = f"over {', '.join(chosen)} in dimension {'last' if dim else 0}"
            ctx.fail(f"vmap {where}: {text}")
