"""Kernels are queued on the current stream."""

from opcheck_suite.registry import check


def _applies(ctx):
    from opcheck_suite import queued

    return queued.why_not(ctx)


@check(
    id="device.stream",
    title="The kernel is not on the current stream",
    what=(
        "Makes a new stream the current one, keeps it busy for 50 ms, writes other values into the arguments, and "
        "calls the op, all on that stream. The result must be that of the new values: a kernel that is queued "
        "elsewhere reads the old ones."
    ),
    why=(
        "On the default stream everything is in order. Data loaders, CUDA graphs, pipelines and FSDP run models on "
        "other streams, where such a kernel reads arguments that are not there yet: results are wrong now and then."
    ),
    fix="Launch on the current stream of the arguments' device: at::cuda::getCurrentCUDAStream().",
    docs="https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams",
    tier="quick",
    scope="signature",
    applies=_applies,
)
def stream(ctx, case):
    import torch

    from opcheck_suite import alternatives, queued

    queued.plain(ctx, case)
    others = alternatives.of(ctx, case)
    if not others:
        ctx.skip("the op refuses other values than this sample's, or gives the same result for them")
    index = torch.accelerator.current_device_index()
    expected = ctx.require(case).results()

    def run(*, load):
        side = queued.new_stream(ctx, index)
        return queued.call(ctx, case, others[0], index=index, stream=side, load=load)

    late = run(load=True)
    if difference := ctx.compare(late.results, expected):
        if ctx.compare(run(load=False).results, expected):
            ctx.skip("the result is another without other work, too: see values.repeatable")
        old = ctx.compare(late.results, ctx.require(others[0]).results()) is None
        what = "it computes with what its arguments held before" if old else "it does not wait for its arguments"
        ctx.fail(f"where a new stream is the current one, the op does not run on it: {what}: {difference}")
    if not late.told:
        ctx.not_exercised("the device was done with the work that was to keep it busy before the op was called")
