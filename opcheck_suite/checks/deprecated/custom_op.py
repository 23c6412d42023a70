"""Ops made through torch's first, private API."""

from opcheck_suite.registry import check


@check(
    id="deprecated.custom_op",
    title="Registered through torch._custom_op",
    what="Looks where the op's schema was registered: in torch._custom_op or torch._custom_ops.",
    why="That API warns that it is going to be removed; on a torch without it, importing the library fails.",
    fix="Use torch.library.custom_op, or torch.library.define with torch.library.impl.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    tier="static",
    scope="op",
)
def custom_op(ctx):
    places = (ctx.info.where, *ctx.info.kernels.values())
    place = next((p for p in places if "torch/_custom_op" in p), None)
    if place is not None:
        ctx.fail(f"the op is registered by the deprecated {place.partition('/')[2].partition(':')[0]}")
