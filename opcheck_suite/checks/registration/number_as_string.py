"""Numbers are passed as numbers."""

from opcheck_suite.registry import check


@check(
    id="registration.number_as_string",
    title="A number is passed as a string",
    what="Looks for string arguments whose value in a sample is the text of a number.",
    why=(
        "Strings are constants to a compiler: every new value compiles again, and after a few the function runs in "
        "eager."
    ),
    fix="Declare the argument float, SymInt, or a 0-dimensional Tensor.",
    docs="https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html",
    tier="quick",
    severity="warn",
    applies=lambda ctx: (
        None if any("str" in str(a.type) for a in ctx.info.schema.arguments) else "the op takes no string"
    ),
)
def number_as_string(ctx, case):
    for name, value in case.bound().items():
        if isinstance(value, str) and _number(value):
            ctx.fail(f"argument {name!r} is a string that holds the number {value}")


def _number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
