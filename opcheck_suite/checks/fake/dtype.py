"""Fake and real outputs have one dtype."""

from opcheck_suite.registry import check


@check(
    id="fake.dtype",
    title="The fake kernel gives another dtype",
    what="Compares the dtypes of outputs between the op and its fake kernel.",
    why="Compiled code reinterprets the output's memory by the fake dtype, and promotes types by it.",
    fix="Give the dtype in the fake kernel: x.new_empty(shape, dtype=...).",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
    variants=("sample", "empty", "floats", "arguments"),
)
def dtype(ctx, case):
    from opcheck_suite import fakepairs

    for pair in fakepairs.tensor_pairs(ctx, case):
        if pair.real.dtype != pair.fake.dtype:
            ctx.fail(f"{pair.name} is {pair.real.dtype}, with fake tensors {pair.fake.dtype}")
