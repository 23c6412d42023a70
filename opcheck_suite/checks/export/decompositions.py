"""The op is still there when a program is exported in strict mode and taken apart."""

from opcheck_suite.registry import check


@check(
    id="export.decompositions",
    title="The op does not survive run_decompositions",
    what=(
        "Exports a call of the op in strict mode (Dynamo reads the function), runs "
        "ExportedProgram.run_decompositions(), and looks for the op in the result: one call, as before. With "
        "opaque=False the op must be gone. Outputs and mutated arguments are compared with those of an eager call, "
        "before and after."
    ),
    why=(
        "Every way to deploy a program begins with it. An op that is taken apart or dropped there never runs its own "
        "kernel in production."
    ),
    fix=(
        "Register the kernel for devices with a fake kernel, not at CompositeImplicitAutograd; a kernel at an Autograd "
        "key must call the op again below autograd, whether or not gradients are recorded."
    ),
    docs="https://docs.pytorch.org/docs/stable/export.html#torch.export.ExportedProgram.run_decompositions",
    tier="full",
    scope="signature",
    applies=lambda ctx: (
        ctx.not_functional()
        or (
            "nobody says whether the op is meant to be decomposed: see registration.composite"
            if ctx.info.transparent and ctx.spec.opaque is None
            else None
        )
    ),
)
def decompositions(ctx, case):
    from opcheck_suite import compilepairs, exporting

    exporting.settled(ctx, case)
    if (trace := compilepairs.graph(ctx, case)).breaks or trace.error is not None:
        ctx.not_exercised("Dynamo cannot read the call: see compile.graph_breaks")
    found = exporting.program(ctx, case, strict=True)
    if found.error is not None:
        ctx.fail(f"torch.export with strict=True raised {found.text}; with strict=False it succeeds")
    _agree(ctx, case, found, "the program exported with strict=True")
    found = exporting.decomposed(ctx, found)
    if found.error is not None:
        ctx.fail(f"run_decompositions raised {found.text}")
    targets = found.targets()
    count, calls = targets.count(ctx.info.name), ", ".join(targets[:6]) or "nothing"
    if ctx.opaque and not count and any(t.startswith(f"{ctx.info.namespace}::") for t in targets):
        ctx.skip(f"the op calls another op of its library in its place; the program calls {calls}")
    if ctx.opaque and count != 1:
        ctx.fail(f"a function that calls the op once has it {count} times after run_decompositions; it calls {calls}")
    if not ctx.opaque and count:
        ctx.fail(f"the op is meant to be decomposed, but is in the program as it is; it calls {calls}")
    _agree(ctx, case, found, "after run_decompositions the program")


def _agree(ctx, case, found, what):
    from opcheck_suite import exporting

    if text := exporting.difference(ctx, case, exporting.observe(ctx, case, found.call)):
        ctx.fail(f"{what} differs from an eager call: {text}")
