"""What torch puts between autograd and the kernels sees the op."""

from opcheck_suite.registry import check


@check(
    id="dispatch.modes",
    title="Dispatch modes and tensor subclasses do not see the op",
    what=(
        "Calls the op, with arguments that do not require grad, under a TorchDispatchMode that passes calls on. The op "
        "must be among these calls, and its result what it is without the mode."
    ),
    why=(
        "A kernel at an Autograd key runs for every call, also where nothing requires grad. If it then computes the "
        "result itself, then the profiler, the compiler, FakeTensor and tensor subclasses such as DTensor see what is "
        "inside of it and not the op, or get at memory that a subclass does not have."
    ),
    fix=(
        "Let every path through the autograd kernel call the op again, with autograd switched off "
        "(at::AutoDispatchBelowADInplaceOrView in C++), or use torch.library.register_autograd, which does."
    ),
    docs="https://github.com/pytorch/pytorch/issues/101322",
    tier="quick",
    scope="signature",
    applies=lambda ctx: "torch decomposes the op" if ctx.info.transparent else None,
)
def modes(ctx, case):
    from opcheck_suite import ops

    run = ctx.require(case)
    seen, results = _watch(ctx, case, grad=False)
    if ctx.info.op not in seen:
        others = [f for f in dict.fromkeys(seen) if f.namespace not in ops.TORCHS_OWN]
        if others:
            ctx.skip(f"the op calls {', '.join(map(str, others))} in its place, which modes see")
        if ctx.no_gradients() is None and ctx.info.op not in _watch(ctx, case, grad=True)[0]:
            ctx.not_exercised("the op is hidden as well where an argument requires grad: see autograd.redispatch")
        calls = ", ".join(dict.fromkeys(map(str, seen))) or "nothing"
        ctx.fail(f"a dispatch mode does not see the op, but {calls[:200]}")
    if ctx.deterministic and (difference := ctx.compare(results, run.results())):
        ctx.fail(f"under a dispatch mode that passes calls on the result is another: {difference}")


def _watch(ctx, case, *, grad):
    """What a dispatch mode sees of a call, and the call's results."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from opcheck_suite import compilepairs

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    def call(*args, **kwargs):
        with Watch():
            return ctx.call(ctx.info.op, *args, what="the op, under a dispatch mode,", **kwargs)

    observed = compilepairs.observe(ctx, case, call, gradients=grad)
    if observed.error is not None:
        raise observed.error
    return seen, observed.results
