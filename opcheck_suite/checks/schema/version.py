"""Writes are visible to autograd."""

from opcheck_suite.registry import check


@check(
    id="schema.version",
    title="A write that autograd does not see",
    what=(
        "Compares the version counter of arguments declared as mutated before and after a call that changed their "
        "bytes."
    ),
    why=(
        "Autograd keeps tensors for backward and detects by the version counter that one was overwritten. A write "
        "through a raw pointer leaves the counter alone, and the gradient is silently wrong."
    ),
    fix=(
        "Make the op with torch.library.custom_op, which counts for you; write with in-place ops; or in C++ call "
        "x.unsafeGetTensorImpl()->bump_version() after writing."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks",
    tier="quick",
    applies=lambda ctx: None if ctx.info.mutated else "the schema declares no argument as mutated",
)
def version(ctx, case):
    run = ctx.require(case)
    looked = False
    for before in run.before:
        if not case.writes(before.name) or not before.changed_bytes().any():
            continue
        looked = True
        if before.tensor._version == before.version:
            ctx.fail(f"argument {before.name!r} is written, but its version counter stays at {before.version}")
    if not looked:
        ctx.skip("the call changes no argument")
