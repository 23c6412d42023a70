"""Fake and real outputs are on one device."""

from opcheck_suite.registry import check


@check(
    id="fake.device",
    title="The fake kernel gives another device",
    what=(
        "Compares the devices of outputs between the op and its fake kernel, and requires the fake outputs to be fake"
        " tensors."
    ),
    why=(
        "A fake kernel that allocates with torch.empty(...) and no device gives CPU tensors on every machine with a "
        "GPU, and torch.compile then fails or inserts copies."
    ),
    fix="Allocate from an input, as x.new_empty(...) or torch.empty_like(x) do.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
)
def device(ctx, case):
    from opcheck_suite import fakepairs, fakes

    for pair in fakepairs.tensor_pairs(ctx, case):
        if not fakes.is_fake(pair.fake):
            ctx.fail(f"{pair.name} of the fake kernel is a real tensor, with data")
        if pair.real.device != pair.fake.device:
            ctx.fail(f"{pair.name} is on {pair.real.device}, with fake tensors on {pair.fake.device}")
