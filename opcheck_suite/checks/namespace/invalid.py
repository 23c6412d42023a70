"""Names that cannot be written in Python."""

import keyword

from opcheck_suite.registry import check


@check(
    id="namespace.invalid",
    title="The op's name cannot be written in Python",
    what="Requires namespace, name and overload to be ASCII identifiers, no keywords, and no double-underscore names.",
    why=(
        "torch.ops.namespace.name must be an attribute access: torch.export prints calls as source, and serialised "
        "programs look ops up by name. torch accepts other names and fails later."
    ),
    fix="Use letters, digits and underscores, and begin with a letter.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.define",
    tier="static",
    scope="op",
)
def invalid(ctx):
    namespace, _, rest = ctx.info.name.partition("::")
    base, _, overload = rest.partition(".")
    for kind, name in (("namespace", namespace), ("name", base), ("overload", overload or "default")):
        if not name.isascii() or not name.isidentifier():
            ctx.fail(f"{kind} {name!r} is not an identifier")
        if keyword.iskeyword(name):
            ctx.fail(f"{kind} {name!r} is a keyword of Python")
        if name.startswith("__"):
            ctx.fail(f"{kind} {name!r} begins with two underscores, which torch.ops keeps for itself")
