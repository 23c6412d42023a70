"""Size arguments are SymInt."""

from opcheck_suite.registry import check


@check(
    id="registration.symint",
    title="A size argument is declared int",
    what=(
        "Raises each int argument by one in a call of the fake kernel: where a size of an output follows it, the "
        "argument is a size and should be SymInt."
    ),
    why=(
        "A symbolic size that is passed to an int argument becomes a constant: one compilation for every value, and "
        "no export."
    ),
    fix="Declare it SymInt in the schema; in C++ take c10::SymInt.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.define",
    tier="quick",
    scope="signature",
    severity="warn",
    applies=lambda ctx: None if _plain(ctx) else "the op has no argument declared int",
)
def symint(ctx, case):
    from opcheck_suite import fakes

    if ctx.fake(case).error is not None:
        ctx.not_exercised("the fake kernel raises: see fake.runs")
    before = _sizes(ctx.fake(case))
    for name in _plain(ctx):
        value = case.bound().get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 2:
            continue
        raised = case.replace({name: value + 1}, variant=f"{name}={value + 1}", group="fake only")
        run = fakes.run(ctx.info.op, raised)
        if run.error is not None:
            continue
        after = _sizes(run)
        if len(before) == len(after) and any(a == value and b == value + 1 for a, b in zip(before, after, strict=True)):
            ctx.fail(
                f"argument {name!r} is int, but is a size of an output: a symbolic size given for it is made a constant"
            )


def _plain(ctx):
    return [a.name for a in ctx.info.schema.arguments if a.real_type.kind() == "IntType"]


def _sizes(run):
    from opcheck_suite.inputs import tensors

    return [int(s) for t in tensors.tensors(run.outputs) for s in t.shape if isinstance(s, int)]
