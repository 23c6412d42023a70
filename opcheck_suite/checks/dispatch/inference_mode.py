"""The op works in inference mode."""

from opcheck_suite.registry import check


@check(
    id="dispatch.inference_mode",
    title="The op fails or differs in inference mode",
    what="Calls the op under torch.inference_mode with tensors made there, and compares with the ordinary call.",
    why=(
        "Servers run models in inference mode. Its tensors have no version counter, and kernels that ask for one raise."
    ),
    fix="Do not read ._version, and do not set requires_grad, inside of a kernel.",
    docs="https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode",
    tier="quick",
)
def inference_mode(ctx, case):
    import torch

    from opcheck_suite import compilepairs

    run = ctx.require(case)
    if ctx.info.kernel_for(ctx.device) is None:
        ctx.not_exercised(f"no kernel below autograd for {ctx.device}: see registration.kernel")
    with torch.inference_mode():
        seen = compilepairs.observe(ctx, case, ctx.info.op, gradients=False)
    if seen.error is not None:
        ctx.fail(f"in inference mode the op raises {ctx.describe_error(seen.error)}")
    if ctx.deterministic and (difference := ctx.compare(seen.results, run.results())):
        ctx.fail(f"in inference mode the result is another: {difference}")
