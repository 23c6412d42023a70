"""The autograd kernel calls the op again, below autograd."""

from opcheck_suite.registry import check


@check(
    id="autograd.redispatch",
    title="The op disappears when an argument requires grad",
    what=(
        "Calls the op with arguments that require grad under a TorchDispatchMode, which sees what is called below "
        "autograd, and looks for the op there. An autograd kernel may call another operator of its library instead, "
        "unless the spec says opaque=True."
    ),
    why=(
        "An autograd kernel that computes the result itself hides the op: compilers trace what is inside of it, and "
        "FakeTensor, profilers and tensor subclasses never see the op."
    ),
    fix=(
        "Call the op from its autograd kernel with autograd switched off (at::AutoDispatchBelowADInplaceOrView in "
        "C++), or use torch.library.register_autograd, which does."
    ),
    docs="https://docs.pytorch.org/tutorials/advanced/dispatcher.html",
    tier="quick",
    scope="signature",
    applies=lambda ctx: "torch decomposes the op" if ctx.info.transparent else ctx.no_gradients(),
)
def redispatch(ctx, case):
    from torch.utils._python_dispatch import TorchDispatchMode

    from opcheck_suite import gradients, ops

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Watch():
        gradients.forward(ctx, case)
    others = [f for f in seen if f.namespace not in ops.TORCHS_OWN]
    if others and ctx.spec.opaque is None:
        return
    if ctx.info.op not in seen:
        calls = ", ".join(dict.fromkeys(str(f) for f in seen)) or "nothing"
        ctx.fail(f"with an argument that requires grad the op is not called below autograd, but {calls[:200]} is")
