"""A call of the op can be exported, and the program computes what the op does."""

from opcheck_suite.registry import check


@check(
    id="export.program",
    title="The op cannot be exported, or its program differs",
    what=(
        "Exports a function that calls the op once (torch.export.export, strict=False, every size free to stay open), "
        "and compares the program's outputs, mutated arguments and sizes with those of an eager call."
    ),
    why="An op that cannot be exported cannot be deployed, and a program that differs is wrong where it is deployed.",
    fix=(
        "The fake kernel and the autograd formula must not ask whether they are being exported, and no keyword-only "
        "argument may have a name that Python reserves, such as lambda."
    ),
    docs="https://docs.pytorch.org/docs/stable/export.html",
    tier="standard",
    scope="signature",
)
def program(ctx, case):
    from opcheck_suite import exporting

    exporting.ready(ctx, case)
    found = exporting.program(ctx, case)
    if found.error is not None:
        found = exporting.program(ctx, case, dynamic=False)  # sizes are looked at by export.dynamic
    if found.error is not None:
        ctx.fail(f"torch.export raised {found.text}")
    if ctx.opaque and not ctx.info.transparent and ctx.info.name not in found.targets():
        ctx.fail(f"the exported program does not call the op; it calls {', '.join(found.targets()[:6]) or 'nothing'}")
    seen = exporting.observe(ctx, case, found.call)
    if text := exporting.difference(ctx, case, seen):
        ctx.fail(f"the exported program differs from an eager call: {text}")
