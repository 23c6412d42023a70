"""An op that claims to be deterministic is, to the bit."""

from opcheck_suite.registry import check

_CALLS = 6


def _applies(ctx):
    if ctx.device == "cpu":
        return "the run is on the CPU: values.repeatable compares bits there"
    return None if ctx.spec.deterministic else "the spec does not claim that the op is deterministic"


@check(
    id="device.deterministic",
    title="Equal inputs give results that differ in the last bits",
    what=(
        "Where the spec claims deterministic=True, calls the op six times on equal copies of the sample, and of "
        "larger ones, and compares every bit. values.repeatable compares within tolerances on a device."
    ),
    why=(
        "Atomic additions happen in another order each time. Runs that should be the same drift apart, and a bug that "
        "needs the same numbers cannot be found again."
    ),
    fix=(
        "Add in a fixed order (a second pass over partial sums), or claim deterministic=False and call "
        "at::globalContext().alertNotDeterministic(...) so that users can ask for an error."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/randomness.html#avoiding-nondeterministic-algorithms",
    tier="quick",
    scope="signature",
    variants=("sample", "large"),
    applies=_applies,
)
def deterministic(ctx, case):
    from opcheck_suite import compare
    from opcheck_suite.inputs import tensors

    first = tensors.tensors(ctx.require(case).results())
    if not first:
        ctx.skip("no tensor comes out")
    for n in range(1, _CALLS):
        again = ctx.call_eager(case)
        if again.error is not None:
            ctx.fail(f"call {n + 1} on equal inputs raises {ctx.describe_error(again.error)}")
        for k, (a, b) in enumerate(zip(tensors.tensors(again.results()), first, strict=True)):
            if not compare.bitwise(a, b):
                where = ctx.compare([a], [b], exact=True) or "in the bits of NaN or zero"
                ctx.fail(f"call {n + 1} on equal inputs gives output {k} with other bits: {where}")
