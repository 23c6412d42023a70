"""vmap gives what a loop gives."""

from opcheck_suite.registry import check


@check(
    id="transform.vmap",
    title="vmap differs from a loop",
    what=(
        "Maps an op with a batching rule over a new dimension of its tensor arguments, members of lists among them: "
        "all of them, each alone, dimension last, and arguments of fewer dimensions beside others; compares with a "
        "loop. A random op that draws from torch's generators is mapped over equal elements: with randomness='same' "
        "these must give equal results, with randomness='different' not always equal ones; a rule may refuse one. "
        "Ops that write to arguments and have no rule get a warning."
    ),
    why=(
        "A batching rule that does not line up dimensions broadcasts the batch against the data: wrong numbers, no "
        "error."
    ),
    fix=(
        "In the rule, move the batch dimension to the front of every argument and pad ranks before calling the op; "
        "in_dims has a list for a list of tensors. A random op draws once for info.randomness == 'same', once for each "
        "element for 'different'."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_vmap",
    tier="quick",
    scope="signature",
    variants=("sample", "broadcast"),
    applies=lambda ctx: None if ctx.info.takes_tensors else "the op takes no tensor",
)
def vmap(ctx, case):
    from opcheck_suite import mapped

    ctx.require(case)
    names = mapped.leaves(case)
    if not names:
        ctx.skip("the sample gives no plain tensor")
    if ctx.info.vmap is None:
        if ctx.info.mutated:
            # one that updates a list of parameters is seldom meant for a batch of them
            if all(case.writes(name) and "[" not in name for name in names):
                ctx.warn("no batching rule is registered: vmap raises, as torch has no fallback for ops that write")
            ctx.skip("no batching rule is registered, and torch has no fallback for ops that write to arguments")
        ctx.skip("no batching rule is registered, so torch loops over the op by itself")
    if not ctx.deterministic:
        _random(ctx, case, names)
        return
    for chosen, last in mapped.choices(names):
        text = mapped.difference(ctx, case, chosen, last)
        if text:
            ctx.fail(f"{_words(chosen, last)}: {text}")


def _words(chosen, last):
    return f"vmap over {', '.join(chosen)} in dimension {'last' if last else 0}"


def _random(ctx, case, names):
    """What vmap promises of random numbers, which torch leaves to the rule."""
    from opcheck_suite import mapped

    drawn = ctx.call(mapped.drawn_from_torch, ctx, case)
    if drawn is None:
        ctx.skip("the op is random, and not by the seeds of torch's generators, for which alone vmap promises anything")
    refused = {}
    choices = mapped.choices(names)
    for chosen, last in choices:
        where = _words(chosen, last)
        for mode in ("same", "different"):
            try:
                text = mapped.random_difference(ctx, case, chosen, last, mode, drawn[0])
            except mapped.Refuses as error:
                # a rule may refuse a mode; which arguments are batched is no reason to refuse independent draws
                if mode == "different" and chosen != choices[0][0] and mode not in refused:
                    ctx.fail(f"{where} with randomness={mode!r}: it raises {error}, over all arguments it does not")
                refused[mode] = str(error)
                continue
            if text:
                ctx.fail(f"{where} with randomness={mode!r}: {text}")
    if len(refused) == 2:
        ctx.warn(f"with randomness 'same', and with 'different', it raises {refused['same']}")
