"""Functions that are no operators."""

from opcheck_suite.registry import check


@check(
    id="registration.operator",
    title="Not an operator",
    what="Asks whether the callable is registered with the dispatcher.",
    why=(
        "A plain function or an extension's binding is unknown to the dispatcher: torch.compile breaks the graph at "
        "it or traces into it, FakeTensor and export cannot run it, and autograd, vmap and autocast do not see it as "
        "one step."
    ),
    fix="Register it with torch.library.custom_op, or with TORCH_LIBRARY in C++.",
    docs="https://docs.pytorch.org/tutorials/advanced/custom_ops_landing_page.html",
    tier="static",
    scope="op",
)
def operator(ctx):
    if not ctx.info.is_operator:
        ctx.fail(f"{ctx.info.name} is a plain function: the dispatcher does not know it\ndefined at {ctx.info.where}")
