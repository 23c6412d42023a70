"""Tensors that the op reads although they are not arguments."""

from opcheck_suite.registry import check


@check(
    id="registration.hidden_input",
    title="The op reads a tensor that is not an argument",
    what="Looks for tensors among the global variables and closure cells that the op's Python function names.",
    why=(
        "A compiler sees the arguments only: a changed tensor is not noticed, no gradient flows to it, and it stays "
        "on its device when the model moves."
    ),
    fix="Pass the tensor as an argument; or make the values a constant that is built inside of the op.",
    docs="https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html",
    tier="quick",
    scope="op",
)
def hidden_input(ctx):
    import torch

    from opcheck_suite import pykernel

    function = ctx.info.function
    if function is None and (kernel := pykernel.first(ctx)) is not None:
        function = kernel.function
    if function is None or not hasattr(function, "__code__"):
        ctx.skip("the op's kernel is not a Python function")
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    named = {name: cell.cell_contents for name, cell in cells if _filled(cell)}
    named |= {n: function.__globals__[n] for n in function.__code__.co_names if n in function.__globals__}
    hidden = [name for name, value in named.items() if isinstance(value, torch.Tensor)]
    if hidden:
        names = ", ".join(map(repr, hidden))
        ctx.fail(f"the function {function.__qualname__} reads {names}, a tensor outside of its arguments")


def _filled(cell):
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
