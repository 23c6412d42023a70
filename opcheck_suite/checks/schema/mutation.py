"""What the op writes is what its schema says it writes."""

from opcheck_suite.registry import check


@check(
    id="schema.mutation",
    title="The op writes what its schema does not declare",
    what=(
        "Compares the bytes of every argument's whole storage before and after a call, and sizes, strides, "
        "requires_grad and version counters. Undeclared arguments must not change in any bit, declared ones only "
        "within the elements they show, and never in size or stride."
    ),
    why=(
        "Functionalization, autograd and Inductor reorder and reuse memory by the schema alone. An undeclared write, "
        "however small, gives silently wrong numbers under torch.compile."
    ),
    fix="Declare the argument in mutates_args, or as Tensor(a!) in the schema; or write to a copy.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    tier="quick",
    variants=(
        "sample",
        "resized",
        "ones",
        "large",
        "noncontiguous",
        "offset",
        "expanded",
        "empty",
        "arguments",
        "floats",
    ),
    applies=lambda ctx: None if ctx.info.takes_tensors else "the op takes no tensor",
)
def mutation(ctx, case):
    from opcheck_suite.inputs import tensors

    run = ctx.require(case)
    shown = {}
    for name, tensor in run.leaves():
        if case.writes(name) and tensors.strided(tensor):
            key = tensor.untyped_storage()._cdata
            mask = tensors.visible_bytes(tensor)
            shown[key] = shown[key] | mask if key in shown and shown[key].shape == mask.shape else mask
    for before in run.before:
        declared = case.writes(before.name)
        _metadata(ctx, before)
        if not declared and before.tensor.requires_grad:  # inputs are made without
            ctx.fail(f"argument {before.name!r} is made to require grad, and stays so after the call")
        changed = before.changed_bytes().cpu()
        bumped = before.tensor._version != before.version
        if not declared and before.tensor.untyped_storage()._cdata not in shown:
            _undeclared(ctx, before, changed, bumped)
        elif declared and changed.any():
            outside = changed & ~shown[before.tensor.untyped_storage()._cdata]
            if outside.any():
                first = int(outside.nonzero()[0])
                where = f"{int(outside.sum())} bytes of the storage, the first at byte {first}"
                ctx.fail(f"argument {before.name!r} is written outside of its elements: {where}")


def _metadata(ctx, before):
    from opcheck_suite.inputs import tensors

    now = tensors.layout(before.tensor)
    if now != before.meta:
        names = ("size", "stride", "offset", "dtype", "conj", "neg", "storage")
        parts = [
            f"{n} was {a}, is {b}"
            for n, a, b in zip(names, before.meta, now, strict=False)
            if a != b and n != "storage"
        ]
        ctx.fail(f"argument {before.name!r} is given other metadata: {'; '.join(parts) or 'its storage was replaced'}")


def _undeclared(ctx, before, changed, bumped):
    import torch

    from opcheck_suite.inputs import tensors

    if not changed.any():
        if bumped:
            ctx.fail(f"argument {before.name!r} is written, with the values it had, but not declared as mutated")
        return
    inside = changed & tensors.visible_bytes(before.tensor).to(changed.device)
    if not inside.any():
        count = f"{int(changed.sum())} bytes of its storage that it does not show"
        ctx.fail(f"memory around argument {before.name!r} is written: {count}")
    old = torch.empty(0, dtype=before.tensor.dtype, device=before.data.device)
    old.set_(
        before.data.untyped_storage(), before.tensor.storage_offset(), before.tensor.size(), before.tensor.stride()
    )
    now = before.tensor.detach()
    differs = (now != old) & ~((now != now) & (old != old))
    if not differs.any():
        ctx.fail(f"argument {before.name!r} is written (bits that compare equal), but not declared as mutated")
    index = tuple(int(i) for i in differs.nonzero()[0])
    count = f"{int(differs.sum())} of {now.numel()} elements"
    ctx.fail(
        f"argument {before.name!r} is written but not declared as mutated: {count}; "
        f"at {list(index)} was {old[index].item()!r}, is {now[index].item()!r}"
    )
