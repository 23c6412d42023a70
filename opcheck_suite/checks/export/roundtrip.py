"""A program that calls the op can be saved and loaded, and then computes the same, at other sizes too."""

from opcheck_suite.registry import check


@check(
    id="export.roundtrip",
    title="A saved and loaded program differs",
    what=(
        "Saves the exported program (torch.export.save), loads it, and compares what it computes with the op, at the "
        "sample's sizes and at others: outputs, mutated arguments, and the sizes that the program computes with. "
        "Skipped where torch cannot write a type of the op's schema to a file."
    ),
    why=(
        "A loaded program is what runs in production, at sizes nobody exported it with. A size that the fake kernel "
        "made a constant is wrong there, and nothing fails."
    ),
    fix=(
        "Compute the sizes of outputs from x.shape in the fake kernel, never from a size's hint, from a cache of an "
        "earlier call or from outside."
    ),
    docs="https://docs.pytorch.org/docs/stable/export.html#serialization",
    tier="standard",
    scope="signature",
)
def roundtrip(ctx, case):
    from opcheck_suite import exporting

    found = exporting.settled(ctx, case)
    unsaveable = ""
    try:
        again, which = exporting.loaded(found).call, "loaded"
    except exporting.Unsaveable as reason:
        again, which, unsaveable = found.call, "exported", str(reason)
    for made in [case, *exporting.other_sizes(ctx, case, found)]:
        if exporting.observe(ctx, made, found.call).error is not None:
            continue  # export.dynamic reports sizes that the program refuses
        if text := exporting.difference(ctx, made, exporting.observe(ctx, made, again)):
            at = f" at other sizes, {made.variant}" if made.variant else ""
            ctx.fail(f"the {which} program differs from the op{at}: {text}")
    if unsaveable:
        ctx.skip(f"unsaved, the program agrees at other sizes, but torch cannot write it to a file: {unsaveable}")
