"""Backward takes incoming gradients of every layout."""

from opcheck_suite.registry import check


@check(
    id="autograd.incoming",
    title="The layout of the incoming gradient changes the gradient",
    what=(
        "Runs backward with the same incoming gradient packed, transposed, in channels-last order, with gaps, as a "
        "slice of a wider tensor, and expanded from one number, and compares."
    ),
    why=(
        "sum() sends an expanded gradient, cat() a slice, a transpose a transposed one, a convolution one in channels-"
        "last order. A backward kernel that reads it as packed memory gives wrong gradients; one that calls .view(-1) "
        "raises."
    ),
    fix="Call grad.contiguous() in backward before taking its pointer, and reshape instead of view.",
    docs="https://github.com/pytorch/pytorch/issues/132857",
    tier="quick",
    applies=lambda ctx: ctx.no_gradients(),
)
def incoming(ctx, case):
    from opcheck_suite import gradients
    from opcheck_suite.inputs import layouts

    packed = gradients.forward(ctx, case)
    seeds = packed.seeds()
    expected = gradients.plain(ctx, packed, [s.clone() for s in seeds])  # backward may write to them
    changes = {
        "transposed": layouts.transposed,
        "in channels-last order": layouts.channels_last,
        "with gaps": layouts.gapped,
        "a slice of a wider tensor": layouts.padded,
        "expanded from one number": _expanded,
    }
    for word, change in changes.items():
        if word.startswith("expanded"):
            ones = [s.new_ones(s.shape) for s in seeds]
            expected = gradients.run(ctx, gradients.forward(ctx, case).backward, ones)
        changed = [change(s) for s in seeds]
        if all(m is None for m in changed):
            continue
        made = [s.clone() if m is None else m for s, m in zip(seeds, changed, strict=True)]
        got = gradients.run(ctx, gradients.forward(ctx, case).backward, made, what=f"backward, with a gradient {word},")
        for name, grad in expected.items():
            difference = ctx.compare([got[name]], [grad], names=f"the gradient of {name!r}")
            if difference:
                ctx.fail(f"with an incoming gradient {word}: {difference}")


def _expanded(seed):
    return seed.new_ones(()).expand(seed.shape)
