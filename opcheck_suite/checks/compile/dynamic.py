"""Compiled code is used again for other sizes and numbers."""

from opcheck_suite.registry import check


@check(
    id="compile.dynamic",
    title="Other sizes or numbers are compiled for again, or give wrong results",
    what=(
        "Calls one compiled function with the sample and with other sizes, with gradients where the op has them: one "
        "recompilation at most, none with dynamic=True and sizes marked by mark_dynamic, and no size held to one "
        "value. Also with sizes marked by mark_unbacked, where that can be traced. Results are compared with eager at "
        "each size. Numbers that change are compiled for and not run."
    ),
    why=(
        "Each recompilation takes seconds at a moment when a user waits; after eight torch.compile gives up on the "
        "function. A size that is held to one value cannot be exported as dynamic."
    ),
    fix=(
        "Read the guard. Do not call int() on sizes or branch on them in the fake kernel, in setup_context and in "
        "backward; use torch._check and operators that take symbolic sizes. Declare arguments that are sizes SymInt."
    ),
    docs="https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html",
    tier="standard",
    scope="signature",
)
def dynamic(ctx, case):
    from opcheck_suite import compilepairs, sweeps

    compilepairs.ready(ctx, case)
    trace = compilepairs.graph(ctx, case)
    if trace.breaks or trace.error is not None:
        ctx.not_exercised("the call does not compile to one graph: see compile.graph_breaks")
    notes, warning = _sizes(ctx, case)
    changes = sweeps.numbers(ctx, case)
    for change in changes:
        if change.kind == "SymInt" and len(change.guards) > 1:
            guards = "\n".join(f"guard   {g}" for g in change.guards)
            ctx.warn(f"argument {change.name!r} is SymInt, and is compiled for again at each value\n{guards}")
    if warning:
        ctx.warn(warning)
    notes += [_told(change) for change in changes]
    if not notes:
        ctx.skip("the op takes no other sizes than those of the sample, and no number")
    ctx.note("\n".join(notes))


def _sizes(ctx, case):
    """What is worth noting of calls with other sizes, and a warning; fails where a size is held or a result wrong."""
    import torch

    from opcheck_suite import sweeps

    others = sweeps.resized(ctx, case)
    if not others:
        return [], ""
    cases = [case, *others]
    alike = ctx.deterministic
    plain = sweeps.run(ctx, cases, backend="eager", dynamic=None)
    if ctx.info.returns_lists:
        # How many tensors are in a list must be known when code is compiled, and may follow from a size.
        if alike and plain.trace.error is None and (text := sweeps.difference(ctx, cases, plain)):
            ctx.fail(f"other sizes give another result: {text}")
        return [_recompiled(others, plain)], ""
    backend = "eager" if ctx.info.returns_alias else "aot_eager"
    marked = sweeps.run(ctx, cases, backend=backend, dynamic=True, mark=torch._dynamo.mark_dynamic)
    warning = ""
    for how, sweep, allowed in (("", plain, 1), (" with dynamic=True and mark_dynamic", marked, 0)):
        if held := sweeps.held(sweep, dynamic=not allowed):
            text = f"a size is held to one value{how}: {held}\n{_calls(cases)}"
            if sweep is marked and backend != "eager" and not _holds(ctx, cases, backend):
                ctx.warn(f"in backward, {text}")  # which may be a function of torch that takes plain integers
            ctx.fail(text)
        if sweep.trace.error is not None and len(sweep.outcomes) < 2:
            ctx.not_exercised(f"the sample itself does not compile: {ctx.describe_error(sweep.trace.error)}")
        if sweep.trace.error is not None:
            at = cases[min(len(sweep.outcomes), len(cases)) - 1].describe()
            ctx.fail(f"calls with other sizes{how} raised {ctx.describe_error(sweep.trace.error)}\nat      {at}")
        if alike and (text := sweeps.difference(ctx, cases, sweep)):
            ctx.fail(f"other sizes{how} give another result: {text}")
        told = sweeps.of_sizes(case, others, sweep.guards)
        if len(told) > allowed and not warning:
            guards = "\n".join(f"guard   {g}" for g in told[allowed:])
            warning = f"{_recompiled(others, sweep)}{how}\n{guards}"
    unbacked = sweeps.run(ctx, cases, backend="eager", dynamic=None, mark=torch._dynamo.decorators.mark_unbacked)
    if alike and (text := sweeps.difference(ctx, cases, unbacked)):
        ctx.fail(f"sizes marked by mark_unbacked give another result: {text}")
    notes = [_recompiled(others, plain)]
    if unbacked.trace.error is not None:
        reason = ctx.describe_error(unbacked.trace.error).partition(" (unhinted")[0]
        notes.append(f"sizes cannot be unbacked: {reason}")
    return notes, warning


def _holds(ctx, cases, backend):
    """Whether a size is held to one value where backward is left out, too."""
    import torch

    from opcheck_suite import sweeps

    mark = torch._dynamo.mark_dynamic
    forward = sweeps.run(ctx, cases, backend=backend, dynamic=True, mark=mark, gradients=False)
    return bool(sweeps.held(forward, dynamic=True))


def _recompiled(others, sweep):
    from opcheck_suite.costs import number

    return f"{number(len(others), 'other size')}: {number(len(sweep.guards), 'recompilation')}"


def _calls(cases):
    return "\n".join(f"then    {case.describe()}" for case in cases[1:])


def _told(change):
    from opcheck_suite.costs import number

    values = number(change.values, "other value")
    words = f"{change.name} ({change.kind}): {number(len(change.guards), 'recompilation')} for {values}"
    return words + "".join(f"; {g}" for g in change.guards)
