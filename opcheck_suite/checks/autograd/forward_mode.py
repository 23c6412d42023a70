"""Derivatives in forward mode are what backward says, or refused."""

from opcheck_suite.registry import check

#: How far the two modes may be apart, in parts of the sum of what is added up, by the size of an element in bytes.
_TOLERANCE = {8: 1e-7, 4: 1e-4, 2: 5e-2}


@check(
    id="autograd.forward_mode",
    title="Forward mode gives another derivative than backward",
    what=(
        "Sends a direction v forward through the op with torch.autograd.forward_ad and weights u back through it: with "
        "the op's Jacobian J, u · Jv must be v · Jᵀu. An exception in forward mode is right. Left out are formulas "
        "given to torch.library.register_autograd: torch loses the direction there, and offers no way to say what it "
        "is."
    ),
    why=(
        "torch.func.jvp, jacfwd and hessian use forward mode. An autograd kernel that takes a short cut where nothing "
        "requires grad loses the derivative, which then counts as zero, without an error."
    ),
    fix=(
        "Call the autograd.Function whatever requires grad: without a jvp it refuses forward mode by itself. Where it "
        "has a jvp, compare that with the derivative."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/extending.html#forward-mode-ad",
    tier="standard",
    scope="signature",
    applies=lambda ctx: ctx.no_gradients(),
)
def forward_mode(ctx, case):
    from opcheck_suite import gradients

    case = gradients.in_float64(ctx, case) or case
    run = gradients.forward(ctx, case)
    if any(type(root.grad_fn).__name__.startswith("GeneratedBackwardFor") for root in run.roots):
        ctx.skip("torch.library.register_autograd has no forward mode, and loses derivatives without an error")
    if any(leaf.is_complex() for leaf in run.leaves.values()):
        ctx.skip("an argument is complex")
    seeds = run.seeds()
    grads = gradients.plain(ctx, run, seeds)
    directions = {name: _direction(leaf) for name, leaf in run.leaves.items()}
    terms = [(directions[name] * grad).double() for name, grad in grads.items() if grad is not None]
    expected = sum(float(t.sum()) for t in terms)
    size = seeds[0].element_size()
    if size == 8 and not gradients.precise(*gradients.as_function(ctx, case)[:2], gradients.EXACT):
        size = 4  # the op computes in float32 whatever it is given
    allowed = _TOLERANCE.get(size, 0.2) * sum(float(t.abs().sum()) for t in terms)
    tangents = _tangents(ctx, case, run, directions)
    if all(t is None for t in tangents):
        if abs(expected) > allowed:
            ctx.fail(f"forward mode loses the derivative: no output has one, where backward gives {expected:.6g}")
        return
    got = sum(float((s * t).double().sum()) for s, t in zip(seeds, tangents, strict=True) if t is not None)
    if not abs(got - expected) <= allowed:
        ctx.fail(f"the derivative in a direction is {got:.6g} in forward mode, {expected:.6g} by backward")


def _direction(leaf):
    """A direction in which no two neighbouring elements go alike, other than the weights that outputs get."""
    from opcheck_suite import compilepairs

    return compilepairs.weights(leaf).flip(tuple(range(leaf.dim())))


def _tangents(ctx, case, run, directions):
    """The derivatives of the outputs that require grad, in the given directions of the arguments; None where lost.

    Ends the check where forward mode is refused.
    """
    import warnings

    from torch.autograd import forward_ad

    from opcheck_suite.context import OpRaised
    from opcheck_suite.inputs import tensors

    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore")  # the first call of make_dual compiles torch's own formulas in a deprecated way
        duals = {n: forward_ad.make_dual(leaf.detach(), directions[n]) for n, leaf in run.leaves.items()}
        args, kwargs = case.replace(duals, variant="", group="").raw()
        try:
            out = ctx.call(ctx.info.op, *args, what="forward mode", **kwargs)
        except OpRaised as raised:
            ctx.skip(f"forward mode is refused: {ctx.describe_error(raised.error)}")
        outputs = tensors.tensors([out])
        wanted = [outputs[n] for n, t in enumerate(tensors.tensors(run.outputs)) if t.requires_grad]
        return [forward_ad.unpack_dual(t).tangent for t in wanted]
