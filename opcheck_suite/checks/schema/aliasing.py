"""Outputs own their memory, unless the schema says otherwise."""

from opcheck_suite.registry import check


@check(
    id="schema.aliasing",
    title="An output shares memory that the schema does not declare",
    what=(
        "Compares addresses: of outputs with arguments, with each other, and with what the previous call returned. "
        "Outputs that the schema declares as views must be views."
    ),
    why=(
        "Compilers assume that an undeclared output is fresh memory. A shared one is overwritten behind the user's "
        "back, or its gradient is lost; a buffer that is returned twice changes what an earlier caller holds."
    ),
    fix=(
        "Return a clone, or declare the alias in the schema (not for ops made with custom_op, which do not support it)."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    tier="quick",
    variants=("sample", "resized", "ones", "noncontiguous", "arguments", "floats"),
    applies=lambda ctx: (
        "torch decomposes the op, and knows of what it calls which outputs are views"
        if ctx.info.transparent
        else None
        if any("Tensor" in str(r.type) for r in ctx.info.schema.returns)
        else "the op returns no tensor"
    ),
)
def aliasing(ctx, case):
    from opcheck_suite.inputs import tensors

    run = ctx.require(case)
    declared = [_sets(r) for r in ctx.info.schema.returns]
    allowed = {a.name: _sets(a) for a in ctx.info.schema.arguments}
    outs = _outputs(run)
    for n, label, out in outs:
        aliases = declared[n] if n < len(declared) else set()
        shared = [name for name, arg in run.leaves() if arg.numel() and tensors.overlap(out, arg)]
        undeclared = [name for name in shared if not aliases & allowed.get(name.partition("[")[0], set())]
        if undeclared:
            same = any(out is arg for name, arg in run.leaves() if name == undeclared[0])
            verb = "is" if same else "shares memory with"
            ctx.fail(f"{label} {verb} argument {undeclared[0]!r}, which the schema does not declare")
        if aliases and not shared and any(aliases & s for s in allowed.values()):
            ctx.fail(f"{label} is declared as a view of an argument, but is a copy")
    for k, (n, label, out) in enumerate(outs):
        for m, other, tensor in outs[:k]:
            if tensors.overlap(out, tensor) and not declared[n] & declared[m]:
                ctx.fail(f"{label} shares memory with {other}")
    if outs and not case.variant and not ctx.info.returns_alias:
        _kept(ctx, case)


def _kept(ctx, case):
    """Whether a later call hands out the memory that an earlier one returned."""
    from opcheck_suite.inputs import tensors

    # Two calls in a row: in between, calls of other sizes may have replaced the buffer.
    first, second = ctx.call_eager(case), ctx.call_eager(case)
    for _, label, out in _outputs(first):
        for _, _, later in _outputs(second):
            if tensors.overlap(out, later):
                ctx.fail(f"{label} shares memory with what another call returns: the op keeps a buffer")


def _outputs(run):
    """Number, name and tensor of the outputs that have elements."""
    from opcheck_suite.inputs import tensors

    found = [(n, i, t) for n, value in enumerate(run.outputs) for i, t in enumerate(tensors.tensors(value))]
    return [(n, _label(run, n, i), t) for n, i, t in found if t.numel() and tensors.strided(t)]


def _sets(part):
    info = part.alias_info
    return set() if info is None else {str(s) for s in info.before_set}


def _label(run, n, i):
    name = f"output {n}" if len(run.outputs) > 1 else "the output"
    return f"{name}[{i}]" if isinstance(run.outputs[n], list | tuple) else name
