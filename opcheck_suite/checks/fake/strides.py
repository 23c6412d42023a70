"""Fake and real outputs have one memory layout."""

from opcheck_suite.registry import check


@check(
    id="fake.strides",
    title="The fake kernel gives other strides",
    what=(
        "Compares strides and storage offsets of outputs between the op and its fake kernel, for packed and for "
        "strided inputs. "
        "Strides of dimensions of size one and of outputs without elements mean nothing and are left out."
    ),
    why=(
        "Inductor generates code that reads the output by the fake strides. Wrong ones give wrong numbers without an "
        "error."
    ),
    fix=(
        "Allocate the output in the same way in both kernels: torch.empty_like(x) follows the input's layout, "
        "x.new_empty(x.shape) does not."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_fake",
    tier="quick",
    variants=("sample", "resized", "noncontiguous", "offset", "expanded"),
)
def strides(ctx, case):
    import torch

    from opcheck_suite import fakepairs, fakes

    for pair in fakepairs.tensor_pairs(ctx, case):
        if pair.real.layout != torch.strided or pair.fake.layout != torch.strided:
            if pair.real.layout != pair.fake.layout:
                ctx.fail(f"{pair.name} has layout {pair.real.layout}, with fake tensors {pair.fake.layout}")
            continue
        if pair.real.dim() != pair.fake.dim() or not pair.real.numel():
            continue  # fake.shape reports other ranks
        real, fake = pair.real.stride(), fakes.strides(pair.fake)
        told = [n for n, size in enumerate(pair.real.shape) if size > 1 and fake[n] is not None]
        if any(real[n] != fake[n] for n in told):
            ctx.fail(f"{pair.name} of shape {list(pair.real.shape)} has strides {list(real)}, with fake tensors {fake}")
        offset = pair.fake.storage_offset()
        if fakes.known(offset) and int(offset) != pair.real.storage_offset() and not _hidden_view(ctx, case, pair.real):
            ctx.fail(f"{pair.name} has storage offset {pair.real.storage_offset()}, with fake tensors {int(offset)}")


def _hidden_view(ctx, case, out):
    """Whether an output is a view of an argument that the schema does not declare: `schema.aliasing` reports it."""
    from opcheck_suite.inputs import tensors

    return not ctx.info.returns_alias and any(tensors.overlap(out, x) for _, x in ctx.require(case).leaves())
