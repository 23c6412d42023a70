"""The decorated function is called as the op."""

import inspect

from opcheck_suite.registry import check


def _applies(ctx):
    if ctx.info.function is None:
        return "the op was not made by torch.library.custom_op"
    try:
        text = inspect.getsource(ctx.info.function).lstrip()
    except (OSError, TypeError):
        return "the source of the op's function cannot be read"
    return None if text.startswith("@") else "the op was made by a call, not by a decorator"


@check(
    id="registration.name",
    title="Function and op have different names",
    what=(
        "Looks for the op's name in the name of the function that torch.library.custom_op decorates; a prefix or "
        "suffix, case and underscores do not matter."
    ),
    why=(
        "Readers look for an op under its function's name, and stack traces, profiles and graphs then name two "
        "things. The first custom_op API required the names to be equal."
    ),
    fix="Give the function the name of the op.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    tier="static",
    scope="op",
    severity="warn",
    applies=_applies,
)
def name(ctx):
    op = ctx.info.name.partition("::")[2].partition(".")[0]
    function = ctx.info.function.__name__
    if _letters(function) and _letters(op) not in _letters(function):
        ctx.fail(f"the function is called {function!r}, the op {op!r}")


def _letters(name):
    """The name without what differs between ``RotaryEmbedding`` and ``rotary_embedding``."""
    return name.replace("_", "").lower()
