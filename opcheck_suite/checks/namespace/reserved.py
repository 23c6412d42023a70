"""Reserved namespaces."""

from opcheck_suite.registry import check
from opcheck_suite.reserved import RESERVED, owner


@check(
    id="namespace.reserved",
    title="The namespace belongs to PyTorch",
    what="Compares the op's namespace with those that PyTorch keeps for itself: " + ", ".join(RESERVED) + ".",
    why=(
        "A later PyTorch may define an operator of that name, and then neither works. torch's own checks leave out "
        "ops in aten, so faults in them go unseen. torch.library refuses only prim."
    ),
    fix="Register the op in a namespace named after your library.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    tier="static",
    scope="op",
    applies=lambda ctx: "registered by PyTorch itself" if ctx.info.from_torch else None,
)
def reserved(ctx):
    belongs = owner(ctx.info.namespace)
    if belongs is not None:
        why = RESERVED[ctx.info.namespace.lower()].why
        ctx.fail(
            f"namespace {ctx.info.namespace!r} is reserved for {belongs}: an op of one's own in it {why}\n"
            f"registered at {ctx.info.where}"
        )
