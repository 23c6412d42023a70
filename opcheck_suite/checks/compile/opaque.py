"""The compiler sees the op as one step."""

from opcheck_suite.registry import check


@check(
    id="compile.opaque",
    title="The compiler looks inside the op",
    what=(
        "Counts the op in what Dynamo captures, in the graph that AOTAutograd hands to the backend, and in the calls "
        "that Inductor's code makes when it runs: one for each call of the op, or, where an autograd kernel stands "
        "before it and the spec does not say opaque=True, a call of another operator of the library. Equal calls may "
        "be merged into one. With opaque=False the op must not be in the last two."
    ),
    why=(
        "A custom op exists so that the compiler runs it as it is. If it is traced into, dropped, folded into a "
        "constant or replaced, its own kernel does not run."
    ),
    fix=(
        "Register the kernel for devices with a fake kernel, not at CompositeImplicitAutograd; a kernel at an "
        "Autograd key must call the op again below autograd, and not compute the result itself. A "
        "lowering or decomposition for Inductor is for those who want one: opaque=True says that there is none."
    ),
    docs="https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html",
    tier="standard",
    scope="signature",
    applies=lambda ctx: (
        ctx.not_functional()
        or (
            "nobody says whether the op is meant to be decomposed: see registration.composite"
            if ctx.info.transparent and ctx.spec.opaque is None
            else "a call without results that writes nothing may be dropped: see compile.effects"
            if not ctx.info.schema.returns and not ctx.info.mutated
            else None
        )
    ),
)
def opaque(ctx, case):
    from opcheck_suite import compilepairs, inductor, programs

    compilepairs.ready(ctx, case)
    trace = compilepairs.graph(ctx, case)
    if trace.breaks:
        ctx.not_exercised("the call breaks the graph: see compile.graph_breaks")
    if trace.error is not None:
        ctx.not_exercised(f"the call does not compile, see compile.parity: {ctx.describe_error(trace.error)}")
    name = ctx.info.name
    if ctx.opaque and trace.targets.count(name) != 1:
        _fail(ctx, trace.targets.count(name), "what Dynamo captures", trace.targets)
    for kind, backend in (("parity", "aot_eager"), (programs.under_inductor(ctx, case), "inductor")):
        if backend == "inductor" and ctx.spec.opaque is None and inductor.replaces(ctx.info.op):
            ctx.skip("one step in the graphs; Inductor has a lowering or decomposition for it, and nothing is claimed")
        got = programs.compiled(ctx, case, kind, backend)
        if got.error is not None:
            ctx.not_exercised(f"the call does not compile, see compile.parity: {ctx.describe_error(got.error)}")
        program = programs.eager(ctx, case, kind)
        least, most = program.calls
        found = got.count(name)
        if found and not ctx.opaque:
            calls = f", which calls {_calls(got.targets)}" if got.targets else ""
            ctx.fail(f"the op is meant to be decomposed, but is as it is in {_WHERE[backend]}{calls}")
        if ctx.opaque and not least <= found <= most:
            alone = programs.build(ctx, case, programs.alone(), backend)
            if _stands_for(ctx, alone.targets) and not alone.count(name):
                return  # what AOTAutograd traced is what Inductor gets
            if alone.error is None and alone.count(name) != 1:
                _fail(ctx, alone.count(name), _WHERE[backend], alone.targets)
            where = ", then ".join(s.name for s in program.situations)
            ctx.fail(f"{most} calls of the op are {found} in {_WHERE[backend]}\nwhere   {where}")


_WHERE = {"aot_eager": "the graph of AOTAutograd", "inductor": "the code of Inductor"}


def _fail(ctx, count, where, targets):
    text = f"a function that calls the op once has it {count} times in {where}"
    ctx.fail(f"{text}, which calls {_calls(targets)}" if targets else text)


def _calls(targets):
    return ", ".join(targets[:6]) or "nothing"


def _stands_for(ctx, targets):
    """Whether an autograd kernel of the library calls another of its operators instead, and nothing is claimed."""
    from opcheck_suite import ops

    others = [t for t in targets if "::" in t and t.partition("::")[0] not in ops.TORCHS_OWN and t != ctx.info.name]
    return bool(others) and ctx.spec.opaque is None
