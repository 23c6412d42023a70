"""Sizes that the op leaves open stay open in an exported program."""

from opcheck_suite.registry import check


@check(
    id="export.dynamic",
    title="An exported program is tied to the sizes it was exported with",
    what=(
        "Exports a call with every size free to stay open (Dim.AUTO). A size that became a constant, or a condition "
        "that the program checks, is a failure when the op accepts sizes that violate it. Integer arguments that equal "
        "a size are also taken from it (x.shape[0]), where the schema says SymInt; a constant there is a warning."
    ),
    why=(
        "torch.export refuses Dim.DYNAMIC for such a size (constraints violated), and a program exported without it "
        "refuses every other batch."
    ),
    fix=(
        "In the fake kernel, compute sizes from x.shape and from the arguments as they are: no int(), no NumPy, no "
        "branches on them; see fake.symbolic."
    ),
    docs="https://docs.pytorch.org/docs/stable/export.html#expressing-dynamism",
    tier="standard",
    scope="signature",
)
def dynamic(ctx, case):
    from opcheck_suite import exporting

    exporting.ready(ctx, case)
    if not any(size > 1 for _, t in case.leaves() for size in t.shape):
        ctx.skip("no argument has a size above one")
    found = exporting.program(ctx, case)
    if found.error is not None:
        if exporting.program(ctx, case, dynamic=False).error is not None:
            ctx.not_exercised("the op cannot be exported: see export.program")
        ctx.fail(f"with sizes left open torch.export raised {found.text}; with constant sizes it succeeds")
    others = exporting.other_sizes(ctx, case, found)
    if text := _narrow(ctx, case, found, others):
        ctx.fail(text)
    names = exporting.tied_arguments(case)
    if names:
        found = exporting.program(ctx, case, tied=True)
        given = f"where {', '.join(map(repr, names))} comes from the size of a tensor"
        if found.error is not None:
            ctx.warn(f"{given}, torch.export raised {found.text}")
        new = [made for made in exporting.other_sizes(ctx, case, found) if made not in others]
        if text := _narrow(ctx, case, found, new):
            ctx.warn(f"{given}, {text}")
    elif not others:
        ctx.not_exercised("the op accepts no other sizes for these arguments that the harness could think of")


def _narrow(ctx, case, found, others):
    """Where a program accepts less than the op does, in words, shown by one of the cases at other sizes."""
    from opcheck_suite import exporting

    was = dict(case.leaves())
    for name, dim in found.fixed(case):
        for made in others:
            if (size := dict(made.leaves())[name].shape[dim]) != was[name].shape[dim]:
                place = f"size {dim} of {name!r}"
                return (
                    f"the exported program has {place} fixed at {was[name].shape[dim]}, but the op accepts {size}\n"
                    f"accepts {made.describe()}"
                )
    if ctx.info.returns_lists:
        return None  # how many tensors are in a list must be decided by conditions on sizes
    for made in others:
        seen = exporting.observe(ctx, made, found.call)
        if seen.error is not None:
            return (
                f"the exported program raises {ctx.describe_error(seen.error)} where the op accepts the sizes\n"
                f"accepts {made.describe()}"
            )
    return None
