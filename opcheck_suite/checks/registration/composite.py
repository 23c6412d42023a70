"""Opaque ops must not be composite, and the reverse."""

from opcheck_suite.registry import check


@check(
    id="registration.composite",
    title="Transparent to the compiler",
    what=(
        "Compares the claim opaque with the key of the op's kernel: CompositeImplicitAutograd means that torch "
        "decomposes the op."
    ),
    why=(
        "A composite op is replaced by the ops that it calls before the compiler or FakeTensor sees it: a kernel "
        "meant to run as it is gets traced, and reads of data inside it break the graph. Checks by dispatch modes "
        "pass without having seen it."
    ),
    fix=(
        "Register the kernel for devices (CPU, CUDA) or at CompositeExplicitAutograd, with a fake kernel; or say "
        "opaque=False."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.impl",
    tier="static",
    scope="op",
)
def composite(ctx):
    claim = ctx.spec.opaque
    if ctx.info.transparent and claim is None:
        ctx.warn("registered at CompositeImplicitAutograd: torch decomposes the op; say opaque=False if that is meant")
    if ctx.info.transparent and claim:
        ctx.fail("meant to be opaque, but registered at CompositeImplicitAutograd: torch decomposes it")
    if claim is False and not ctx.info.transparent:
        have = ", ".join(ctx.info.kernels) or "nothing"
        ctx.fail(f"meant to be transparent, but not registered at CompositeImplicitAutograd; it has kernels for {have}")
