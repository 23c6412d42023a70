"""Every element of an output is written."""

from opcheck_suite.registry import check


@check(
    id="values.unwritten",
    title="An output holds memory that was never written",
    what=(
        "Calls the op with torch's allocations filled with NaN or the largest integer "
        "(torch.utils.deterministic.fill_uninitialized_memory), and what the allocator hands out next with odd bytes; "
        "compares with the ordinary call."
    ),
    why="What was in the memory before is returned: zeros in a test, another user's data or NaN in production.",
    fix=(
        "Write the tail after the last full vector or block, and the whole output when a reduction has length zero; "
        "or allocate zeros."
    ),
    docs="https://docs.pytorch.org/docs/stable/deterministic.html",
    tier="quick",
    variants=("sample", "resized", "ones", "empty"),
    applies=lambda ctx: None if ctx.deterministic else "the op's values are random",
)
def unwritten(ctx, case):
    from opcheck_suite.inputs import sizes

    if case.uncertain and (case.group != "empty" or not sizes.plain(ctx.sample_of(case))):
        ctx.skip("the op may rely on the size that was changed, and read beyond an argument")
    run = ctx.require(case)
    ctx.dirty_memory(run)  # for memory that torch does not fill, since it is not from torch.empty
    poisoned = ctx.poisoned(case)
    if poisoned.error is not None:
        ctx.skip(f"refused in deterministic mode: {ctx.describe_error(poisoned.error)}")
    difference = ctx.compare(poisoned.results(), run.results())
    if difference:
        ctx.fail(f"with fresh memory filled the result is another: {difference}")
