"""An op without results must declare what it is for."""

from opcheck_suite.registry import check


@check(
    id="registration.effects",
    title="A compiler may drop the op",
    what=(
        "Looks for ops that return nothing, declare no argument as mutated and have no registered effect: to a "
        "compiler a call of such an op does nothing."
    ),
    why="torch.compile removes calls whose results nobody uses: the logging, printing or sending never happens.",
    fix=(
        "Declare what is written in mutates_args; or register an effect for the op, so that calls are kept and stay in "
        "order (torch._higher_order_ops.effects._register_effectful_op)."
    ),
    docs="https://github.com/pytorch/pytorch/issues/189309",
    tier="static",
    scope="op",
)
def effects(ctx):
    if not ctx.info.schema.returns and not ctx.info.mutated and not ctx.info.effect:
        ctx.fail(f"{ctx.info.name} returns nothing, writes no argument and has no registered effect")
