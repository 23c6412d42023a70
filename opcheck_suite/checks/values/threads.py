"""Calls from several threads do not disturb each other."""

from opcheck_suite.registry import check


@check(
    id="values.threads",
    title="Calls from several threads disturb each other",
    what=(
        "Calls the op from four threads at once, each on copies of its own and, where the op takes them, on values of "
        "its own, and compares every result with that of the same call alone. Python switches threads as often as it "
        "can meanwhile. A call that does not come back is a timeout."
    ),
    why=(
        "Torch runs backward in threads of its own, and so do inference servers, data loaders and DataParallel. A "
        "buffer or table that calls share then mixes one user's numbers into another's, seldom and without an error."
    ),
    fix=(
        "Allocate scratch memory within the call (at::empty is cheap), make it thread_local, or hold a lock while it "
        "is used. A C++ kernel that waits for a lock and for Python's GIL must take them in one order everywhere."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/autograd.html#multithreaded-autograd",
    tier="full",
    scope="signature",
    applies=lambda ctx: None if ctx.deterministic else "the op's values are random",
)
def threads(ctx, case):
    from opcheck_suite import threaded

    if ctx.require(case).left_behind:
        ctx.skip("a call changes the state of the process: see values.state")
    try:
        trouble = threaded.race(ctx, case)
    except threaded.NotThreads:
        ctx.skip("calls disturb each other from one thread, too: see values.repeatable and schema.aliasing")
    if trouble is not None:
        where = f" on {trouble.case.label}" if trouble.case.variant else ""
        share = f"{trouble.wrong} of {trouble.calls} calls{where} go wrong"
        ctx.fail(f"called from {trouble.threads} threads at once, {share}: {trouble.text}")
