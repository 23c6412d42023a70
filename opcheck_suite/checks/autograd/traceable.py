"""Backward works on tensors without data."""

from opcheck_suite.registry import check


@check(
    id="autograd.traceable",
    title="Backward cannot be traced",
    what=(
        "Runs forward and backward with fake tensors, and compares the metadata of the gradients with those of a real "
        "run."
    ),
    why="torch.compile traces backward before it has data: a formula that reads values or calls NumPy raises there.",
    fix="Put what needs data into an op of its own, with a fake kernel, and call that from the formula.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autograd",
    tier="quick",
    scope="signature",
    applies=lambda ctx: ctx.no_gradients(),
)
def traceable(ctx, case):
    import torch

    from opcheck_suite import fakes, gradients

    real = gradients.forward(ctx, case)
    expected = gradients.plain(ctx, real, real.seeds())
    if ctx.fake(case).error is not None or ctx.fake(case).unsupported:
        ctx.not_exercised("the fake kernel raises: see fake.runs")
    error, grads = fakes.backward(ctx.info.op, case, sorted(real.leaves))
    if error is not None:
        ctx.fail(f"backward with fake tensors raises {ctx.describe_error(error)}")
    for name, grad in expected.items():
        other = grads.get(name)
        if (grad is None) != (other is None):
            ctx.fail(
                f"the gradient of {name!r} is {'None' if grad is None else 'a tensor'}, with fake tensors the reverse"
            )
        if isinstance(grad, torch.Tensor) and (grad.shape, grad.dtype) != (other.shape, other.dtype):
            ctx.fail(
                f"the gradient of {name!r} is {grad.dtype} {list(grad.shape)}, "
                f"with fake tensors {other.dtype} {list(other.shape)}"
            )
