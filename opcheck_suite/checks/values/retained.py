"""What the op returns is finished, and the op is finished with its arguments."""

from opcheck_suite.registry import check

#: Seconds in which a thread that the op left behind, or a copy under way, comes to write.
_WAIT = 0.02


@check(
    id="values.retained",
    title="An output changes after the call has returned",
    what=(
        "Overwrites the arguments when the call has returned, waits, and calls the op once more. Outputs of the first "
        "call, and arguments that it wrote, must keep every bit. Outputs that share memory with an argument or with a "
        "later output are left to schema.aliasing."
    ),
    why=(
        "The caller may free or reuse the arguments at once: allocators do so within microseconds. Work that goes on "
        "in another thread, on another stream or in the next call then reads other data, or writes to memory that is "
        "someone else's."
    ),
    fix=(
        "Wait for threads, streams and copies that were started before returning; or, on a GPU, let the current stream "
        "wait for the other one and call Tensor.record_stream. Keep no reference to arguments."
    ),
    docs="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.record_stream.html",
    tier="full",
    scope="signature",
)
def retained(ctx, case):
    import time

    ctx.require(case)
    args, kwargs = case.inputs()
    out = ctx.call(ctx.info.op, *args, **kwargs)
    watched = _watched(case, args, kwargs, out)
    if not watched:
        ctx.skip("the op returns no tensor of its own and writes to none")
    kept = {name: t.detach().clone() for name, t in watched.items()}
    _overwrite(case, args, kwargs, watched)
    time.sleep(_WAIT)
    ctx.synchronize()
    _compare(ctx, watched, kept, "its arguments were overwritten")
    again, more = case.inputs()
    later = ctx.call(ctx.info.op, *again, **more)
    ctx.synchronize()
    _compare(ctx, _apart(watched, later), kept, "the op was called again")


def _watched(case, args, kwargs, out):
    """By name, the written arguments, and the outputs that share no memory with an argument."""
    from opcheck_suite.inputs import tensors

    leaves = case.leaves((args, kwargs))
    found = {f"argument {n!r}": t for n, t in leaves if case.writes(n)}
    outputs = tensors.tensors(out)
    for n, t in enumerate(outputs):
        if not any(tensors.overlap(t, leaf) for _, leaf in leaves):
            found[f"output {n}" if len(outputs) > 1 else "the output"] = t
    return {name: t for name, t in found.items() if tensors.strided(t) and t.numel()}


def _overwrite(case, args, kwargs, watched):
    """Fill the arguments that are not watched, and share no memory with what is, with zeros, or with ones."""
    import torch

    from opcheck_suite.inputs import tensors

    for _, t in case.leaves((args, kwargs)):
        if tensors.strided(t) and t.numel() and not any(tensors.overlap(t, other) for other in watched.values()):
            with torch.no_grad():  # the op may have made it require grad
                t.fill_(0 if tensors.raw(t).any() else 1)


def _apart(watched, later):
    """What is watched and does not share memory with what a later call returned."""
    from opcheck_suite.inputs import tensors

    outs = tensors.tensors(later)
    return {name: t for name, t in watched.items() if not any(tensors.overlap(t, out) for out in outs)}


def _compare(ctx, watched, kept, when):
    for name, t in watched.items():
        if difference := ctx.compare(t, kept[name], exact=True, names=name):
            ctx.fail(f"{name} changes after the call has returned, when {when}: {difference}")
