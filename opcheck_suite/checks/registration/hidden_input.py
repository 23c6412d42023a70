"""Tensors that the op reads although they are not arguments."""

from opcheck_suite.registry import check

#: What a tensor tells without a look at its values.
_METADATA = ("shape", "size", "dim", "ndim", "numel", "dtype", "device", "layout", "stride", "is_cuda")


@check(
    id="registration.hidden_input",
    title="The op reads a tensor that is not an argument",
    what=(
        "Looks for tensors among the global variables and closure cells that the op's Python function names, and the "
        "values that functools.partial or a method binds to it; also for those that it reads as an attribute of these "
        "or as an element with a constant key, such as Config.weight and TABLES['sine']. An element or attribute that "
        "the function, or one that it calls by name, stores as well is a cache and left alone."
    ),
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

    from opcheck_suite import pykernel, reads

    function, bound = reads.unbound(ctx.info.function)
    if function is None and (kernel := pykernel.first(ctx)) is not None:
        function, bound = kernel.function, kernel.bound
    if function is None:
        ctx.skip("the op's kernel is not a Python function")
    declared = {a.name for a in ctx.info.schema.arguments}
    bound = {n: v for n, v in reads.defaults(function).items() if n not in declared} | bound
    found = reads.outside(function, bound, ends=lambda value: isinstance(value, torch.Tensor))
    # a cache is filled when it is needed; of a tensor whose size is asked for nothing is read
    hidden = dict.fromkeys(read.path for read in found if not read.kept and read.asked not in _METADATA)
    if hidden:
        names = ", ".join(map(repr, hidden))
        ctx.fail(f"the function {function.__qualname__} reads {names}, a tensor outside of its arguments")
