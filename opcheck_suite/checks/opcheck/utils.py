"""torch's own checks of an op."""

from opcheck_suite.registry import check

#: torch's utils, cheap first.
UTILS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_static",
    "test_aot_dispatch_dynamic",
)


@check(
    id="opcheck.utils",
    title="torch.library.opcheck fails",
    what=(
        "Runs the five utils of torch.library.opcheck on each sample, with arguments that require grad where the op "
        "is differentiable. Known false alarms of theirs are skips: ops whose outputs alias arguments, float8 "
        "arguments, NaN in outputs, an integer output before a floating-point one, random ops."
    ),
    why="It is what PyTorch asks authors to run. The other checks here look at more inputs and compare more.",
    fix=(
        "Read torch's message; checks of families schema, fake and compile that fail on the same op say the same with"
        " values."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.opcheck",
    tier="standard",
    scope="signature",
)
def utils(ctx, case):
    import torch

    from opcheck_suite import compilepairs, compiling

    run = ctx.require(case)
    if kinds := {compiling.beyond(t) for _, t in run.leaves()} - {""}:
        ctx.skip(f"torch's utils do not take {', '.join(sorted(kinds))} tensors")
    if run.left_behind:
        ctx.not_exercised("the call leaves the process changed: see values.state")
    args, kwargs = case.inputs()
    # a backward that raises is gradcheck's to report
    wanted = compilepairs.gradient_leaves(ctx, case) if compilepairs.eager(ctx, case).gradients else set()
    leaves = dict(case.leaves((args, kwargs)))
    for name in wanted:
        leaves[name].requires_grad_()
    chosen, left = _choose(ctx, run, bool(wanted))
    if not chosen:
        ctx.skip("; ".join(dict.fromkeys(left.values())))
    with compiling.settings(), ctx.seeded():
        found = torch.library.opcheck(ctx.info.op, args, kwargs, test_utils=chosen, raise_exception=False)
    wrong = {util: result for util, result in found.items() if result != "SUCCESS" and not _beyond(util, result)}
    if wrong:
        _util, error = next(iter(wrong.items()))
        ctx.fail(f"{', '.join(wrong)} of {len(chosen)} utils: {ctx.describe_error(error)}")


def _beyond(util, error):
    """Whether a util says that it cannot run what it met: sizes that data decides, here in backward."""
    return util == "test_aot_dispatch_static" and type(error).__name__ == "DynamicOutputShapeException"


def _choose(ctx, run, gradients):
    """The utils that say something of this op, and why the others do not."""
    import torch

    from opcheck_suite import fakes
    from opcheck_suite.inputs import tensors

    aot = [u for u in UTILS if "aot" in u]
    left = {}
    if reason := ctx.not_functional():
        left |= dict.fromkeys(aot, reason)
    if any(None in fakes.sizes(t) for t in tensors.tensors(ctx.fake(run.case).outputs) if fakes.is_fake(t)):
        left["test_aot_dispatch_static"] = "data decides the shape of an output, which this util cannot run"
    if any(isinstance(value, torch.SymInt) for value in ctx.fake(run.case).outputs):
        left |= dict.fromkeys(UTILS[2:], "data decides a number that is returned, which these utils cannot compare")
    if not ctx.deterministic:
        left |= dict.fromkeys(aot, "the op's values are random")
    outs = tensors.tensors(run.outputs)
    if any(
        t.is_floating_point() and t.element_size() > 1 and bool(t.isnan().any()) for t in outs if tensors.strided(t)
    ):
        left |= dict.fromkeys(aot, "torch compares without equal_nan, and an output has NaN")
    if gradients and len(outs) > 1 and not outs[0].is_floating_point():
        left |= dict.fromkeys(aot, "torch sums outputs into the first one's dtype, which here is an integer")
    if torch.device(ctx.device).type not in ("cpu", "cuda", "xpu"):
        left["test_autograd_registration"] = "this util knows CPU, CUDA and XPU only"
    if any(t.is_floating_point() and t.element_size() == 1 for _, t in run.leaves()):
        left["test_schema"] = "torch's comparison does not know float8"
    if ctx.info.from_torch and ctx.info.namespace == "aten":
        left["test_faketensor"] = "torch leaves out aten"
    return [u for u in UTILS if u not in left], left
