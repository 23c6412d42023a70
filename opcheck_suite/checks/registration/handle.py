"""The op object is the one that is registered."""

from opcheck_suite.registry import check


@check(
    id="registration.handle",
    title="The op object is not the registered operator",
    what="Looks the op up by its name and compares it with the object in the spec.",
    why=(
        "Registering a name again replaces the operator silently. Code that kept the old object then runs the other "
        "kernel, or memory that has been freed."
    ),
    fix="Register each name once; keep Library objects alive; look ops up through torch.ops when they are called.",
    docs="https://github.com/pytorch/pytorch/issues/98537",
    tier="static",
    scope="op",
)
def handle(ctx):
    from opcheck_suite import ops, registry

    try:
        current = ops.resolve(ctx.info.name)
    except registry.UsageError:
        ctx.fail(f"{ctx.info.name} is no longer registered, although its object is still held")
    if not ctx.info.kernels:
        ctx.fail(f"{ctx.info.name} has no kernel at all: the library that registered it is gone")
    if current is not ctx.info.op:
        ctx.fail(f"{ctx.info.name} has been registered again: the object in the spec is not the registered operator")
