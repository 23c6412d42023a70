"""Gradients are derivatives for inputs derived from the samples, too."""

from opcheck_suite.registry import check


@check(
    id="autograd.other_inputs",
    title="The gradient is wrong for other sizes or arguments",
    what=(
        "Runs forward and backward on other sizes, one more dimension, no elements, flags turned round and optional "
        "arguments left out, where forward takes them, and compares with a finite difference in one direction "
        "(float64)."
    ),
    why=(
        "Backward is code of its own: it may know one set of sizes, or count on a bias that forward can do without. "
        "Forward passes every test, and training raises or goes wrong with the first other configuration."
    ),
    fix=(
        "In setup_context, save what tells backward which arguments were there and with which sizes and flags; or "
        "refuse in forward what has no gradient."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autograd",
    tier="standard",
    variants=("arguments", "resized", "ranks", "empty", "large"),
    applies=lambda ctx: ctx.no_gradients(),
)
def other_inputs(ctx, case):
    from opcheck_suite import gradients

    sample = ctx.sample_of(case)
    changed = _changed(sample, case)
    if case.uncertain or any(isinstance(v, float) for v in changed):
        ctx.skip("whether the op is differentiable there is not known")
    gradients.backward_runs(ctx, sample)
    if ctx.memo(("direction", sample.key), lambda: _wrong(ctx, sample)):
        ctx.not_exercised("the gradient of the sample itself is wrong: see autograd.gradcheck")
    ctx.require(case)
    grads = gradients.attempt(ctx, case, unsure=bool(changed) and None not in changed)
    if not any(g is not None for g in grads.values()):
        ctx.skip("no gradient reaches an argument here, which may be meant")
    if wrong := _wrong(ctx, case):
        ctx.fail(wrong)


def _changed(sample, case):
    """The values of a variant that are no tensors and differ from its sample's; those left out count."""
    import torch

    was, now = sample.bound(), case.bound()
    found = [v for name, v in now.items() if not isinstance(v, torch.Tensor | list | tuple) and not _same(was, name, v)]
    return [v for v in found if v is None or isinstance(v, bool | float | str)]


def _same(was, name, value):
    return name in was and type(was[name]) is type(value) and was[name] == value


def _wrong(ctx, case):
    """How a derivative in one direction differs from finite differences; empty where it does not, or where those say
    nothing: the op refuses float64, rounds to a lower precision inside, or is a step function.
    """
    import torch

    from opcheck_suite import compilepairs, gradients
    from opcheck_suite.context import OpRaised

    wide = gradients.in_float64(ctx, case)
    if wide is None:
        return ""
    call, inputs, names = gradients.as_function(ctx, wide)
    if any(t.is_complex() for t in inputs):
        return ""

    def loss(*leaves):
        outs = call(*leaves)
        return sum(((t * compilepairs.weights(t)).sum() for t in outs), torch.zeros(()))

    def judged(at):
        grads = torch.autograd.grad(loss(*at), at, allow_unused=True)
        return gradients.direction(
            loss, at, [torch.zeros_like(t) if g is None else g for t, g in zip(at, grads, strict=True)]
        )

    try:
        if not ctx.call(call, *inputs):
            return ""
        for at in (inputs, gradients.nearby(inputs, 1e-4)):
            got, want, near = ctx.call(judged, at)
            if near is None or near:
                return ""
    except OpRaised:
        return ""
    if want == 0:
        return ""  # the formula may stand in for that of a step function on purpose
    return (
        f"the derivative in a direction is {got:.6g} by backward, {want:.6g} by finite differences "
        f"(over {', '.join(map(repr, names))}, in float64)"
    )
