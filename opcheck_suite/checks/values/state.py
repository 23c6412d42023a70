"""The process is left as it was found."""

from opcheck_suite.registry import check


@check(
    id="values.state",
    title="The op changes the state of the process",
    what=(
        "Compares grad mode, default dtype, thread count, deterministic mode, autocast, working directory, warning "
        "filters, NumPy's error handling, flushing of denormals, stdout and stderr before and after each call, also "
        "one that raises, and counts what the call printed (64 KiB are allowed). Calls the op after two seeds of the "
        "global generators: these must not be in one and the same state afterwards."
    ),
    why=(
        "What runs after the op then behaves differently: parameters of the wrong dtype, gradients that are not "
        "recorded, random numbers that repeat, logs that fill a disk."
    ),
    fix=(
        "Use context managers such as torch.no_grad() that put the state back, also when an exception is raised; a "
        "torch.Generator of the op's own, or torch.random.fork_rng, for numbers that must be the same each time."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation",
    tier="quick",
    variants=("sample", "resized", "ranks", "empty", "floats", "arguments"),
)
def state(ctx, case):
    run = ctx.eager(case)
    if run.left_behind:
        raised = f", having raised {ctx.describe_error(run.error)}" if run.error is not None else ""
        ctx.fail(f"the call leaves the process changed: {'; '.join(run.left_behind)}{raised}")
    if case.variant:
        return
    ctx.require(case)
    set_to_one = _seeded(ctx, case)
    if set_to_one:
        ctx.fail(f"the call seeds {', '.join(set_to_one)}: after it, the state is the same whatever it was before")


def _seeded(ctx, case):
    """The global generators that are in one state after calls from two states."""
    from opcheck_suite import state

    after = []
    for seed in (11, 12):
        args, kwargs = case.inputs()
        with ctx.seeded(seed):
            try:
                ctx.info.op(*args, **kwargs)
            except Exception:
                return []  # where it raises by chance, other checks say so
            after.append(state.positions())
    one, two = after
    return [name for name in one if one[name] == two.get(name)]
