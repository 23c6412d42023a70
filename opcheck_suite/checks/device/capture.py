"""A captured call gives the right result when it is replayed."""

from opcheck_suite.registry import check

_BY_NATURE = ("data_dependent_output", "dynamic_output_shape")


def _applies(ctx):
    from opcheck_suite import captured

    if (reason := captured.why_not(ctx)) is not None:
        return reason
    if "cudagraph_unsafe" in ctx.info.tags:
        return "the op is tagged cudagraph_unsafe: torch.compile captures what is around it"
    for tag in _BY_NATURE:
        if tag in ctx.info.tags:
            return f"the op is tagged {tag}: the host waits for what it finds"
    if any("Tensor" not in str(returned.type) for returned in ctx.info.schema.returns):
        return "the op returns a number: the host waits for it"
    return None


@check(
    id="device.capture",
    title="A replay of the captured call gives another result",
    what=(
        "Captures a call into a graph of the device, calls the op on other values, and replays the graph three times "
        "with values that change in its arguments. Every replay must give what a call gives. An op that cannot be "
        "captured gets a warning."
    ),
    why=(
        'Serving engines and torch.compile(mode="reduce-overhead") replay graphs. A replay runs the kernels and none '
        "of the host's code: what the host had read or counted stays what it was, work that went to another stream is "
        "not done again, and results are wrong without an error."
    ),
    fix=(
        "Launch on the current stream, leave values in tensors of the device, and keep no state on the host. Where the "
        "host must wait, tag the op torch.Tag.cudagraph_unsafe: torch.compile then captures what is around it."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",
    tier="standard",
    scope="signature",
    applies=_applies,
)
def capture(ctx, case):
    import torch

    from opcheck_suite import alternatives, captured, queued
    from opcheck_suite.inputs import tensors

    queued.plain(ctx, case)
    if _size_is_found(ctx, case):
        ctx.skip("the size of an output depends on values, for which the host waits")
    if any(t.device.type != torch.device(ctx.device).type for t in tensors.tensors(ctx.require(case).results())):
        ctx.skip("an output is not on the device: the host waits for it")
    try:
        graph = captured.Captured(ctx, case)
    except captured.Refused as refused:
        ctx.warn(
            f"the call cannot be captured into a graph: {refused}\n"
            "note    the op waits for the device, copies from or to the host, or queues work that nothing waits for"
        )
    others = alternatives.of(ctx, case)[:1] or [case]
    ctx.call_eager(others[0])  # what the op keeps is another's now
    earlier = {}
    # one replay is not enough: what a kernel keeps on the device may serve once
    for n, (name, values) in enumerate([("the first", others[0]), ("the second", case), ("the third", others[0])]):
        found = graph.replay(values)
        if difference := ctx.compare(found, ctx.require(values).results()):
            if ctx.compare(graph.call(values), ctx.require(values).results()):
                ctx.skip(
                    "the result of a call on the same tensors is another, too: see values.stale, values.repeatable"
                )
            what = _likeness(ctx, found, earlier, case if n == 0 and others[0] is not case else None)
            ctx.fail(f"{name} replay of a captured call gives another result than a call{what}: {difference}")
        earlier[name] = found


def _size_is_found(ctx, case):
    """Whether the fake kernel leaves a size open."""
    from opcheck_suite.inputs import tensors

    fake = ctx.fake(case)
    made = [] if fake.error is not None or fake.unsupported else tensors.tensors(fake.outputs)
    return not all(isinstance(size, int) for t in made for size in t.shape)


def _likeness(ctx, found, earlier, captured_with):
    for name, results in earlier.items():
        if ctx.compare(found, results) is None:
            return f"; it is that of {name}"
    if captured_with is not None and ctx.compare(found, ctx.require(captured_with).results()) is None:
        return "; it is that of the values with which it was captured"
    return ""
