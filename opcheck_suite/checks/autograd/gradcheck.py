"""Gradients are derivatives."""

from opcheck_suite.registry import check


@check(
    id="autograd.gradcheck",
    title="The gradient is wrong",
    what=(
        "Compares the op's gradients with finite differences (torch.autograd.gradcheck), for all floating-point and "
        "complex arguments, in float64 and complex128, or in the sample's own dtype with wide tolerances where the op "
        "refuses those. Where the op rounds to float32 or less inside, steps and tolerances are wider, too."
    ),
    why="Training with a wrong gradient converges to something else, and nothing fails.",
    fix=(
        "Compare the formula with the derivative of the forward; look at broadcast arguments (sum over the broadcast "
        "dimensions), factors left out, arguments whose gradients are swapped, and, for complex numbers, at conjugates "
        "left out (grad * w.conj())."
    ),
    docs="https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html",
    tier="standard",
    applies=lambda ctx: (
        "the op has no autograd formula, and its spec claims none"
        if not ctx.differentiable
        else "no autograd formula is registered: see registration.autograd"
        if ctx.info.autograd is None
        else "torch supports no autograd formula for ops that write to arguments"
        if ctx.info.mutated
        else None
    ),
)
def gradcheck(ctx, case):
    from opcheck_suite import gradients
    from opcheck_suite.context import OpRaised

    wide = gradients.in_float64(ctx, case)
    call, inputs, names = gradients.as_function(ctx, wide or case)
    gradients.backward_runs(ctx, case)
    if not ctx.call(call, *inputs):
        if ctx.spec.differentiable is None and not _promises(ctx, case):
            ctx.skip("no output requires grad, and the spec does not claim that one does")
        ctx.fail(f"no output requires grad, although {', '.join(names)} do")
    steps = gradients.EXACT if wide is not None else gradients.COARSE
    try:
        wrong = _mismatch(ctx, call, inputs, steps)
        if wrong and wide is not None and not gradients.precise(call, inputs, steps):
            found = gradients.precise_steps(call, inputs)
            if found is None:
                ctx.not_exercised("finite differences depend on the step: the op rounds what it is given, or is random")
            steps, wrong = found, _mismatch(ctx, call, inputs, found)
    except OpRaised as raised:
        if ctx.spec.differentiable is None:
            ctx.skip(f"backward is refused, and the spec does not claim that there is one: {raised}")
        raise
    if wrong:
        worst, flat = ctx.call(_worst, call, inputs, names, steps.eps, what="backward")
        if flat:
            ctx.warn(f"{worst}: right only if the formula stands in for that of a step function on purpose")
        ctx.fail(worst or _message(wrong, names))


def _mismatch(ctx, call, inputs, steps):
    """What gradcheck says where gradients are no derivatives; empty where they are, or where there is no derivative."""
    from torch.autograd.gradcheck import GradcheckError

    from opcheck_suite.context import OpRaised

    try:
        ctx.call(_gradcheck, call, inputs, steps, what="backward")
    except OpRaised as raised:
        if not isinstance(raised.error, GradcheckError):
            raise
        return "" if _at_a_kink(ctx, call, inputs, steps) else str(raised.error)
    return ""


def _promises(ctx, case):
    """Whether a formula of the op's own, and a floating-point output, say that there is a gradient."""
    from opcheck_suite.inputs import tensors

    outs = tensors.tensors(ctx.require(case).outputs)
    return not ctx.info.transparent and any(t.is_floating_point() or t.is_complex() for t in outs)


def _gradcheck(call, inputs, steps):
    import torch

    # kernels that add up in any order give gradients that differ in their last digits from run to run
    options = {**steps.options(), "nondet_tol": steps.atol, "check_undefined_grad": True, "check_batched_grad": False}
    torch.autograd.gradcheck(call, inputs, **options)


def _at_a_kink(ctx, call, inputs, steps):
    """Whether the gradients are finite, and right at inputs nearby: the sample lies where there is no derivative."""
    import torch

    from opcheck_suite import compilepairs, gradients
    from opcheck_suite.context import OpRaised

    if any(t.is_complex() for t in inputs):
        return False
    outs = call(*inputs)
    grads = torch.autograd.grad(outs, inputs, [compilepairs.weights(t) for t in outs], allow_unused=True)
    if any(g is not None and not bool(torch.isfinite(g).all()) for g in grads):
        return False
    try:
        ctx.call(_gradcheck, call, gradients.nearby(inputs, 100 * steps.eps), steps, what="backward")
    except OpRaised:
        return False
    return True


def _worst(call, inputs, names, eps):
    """The element whose gradient is furthest from finite differences, in words, and whether those are zero throughout.

    The words are empty when none stands out. Finite differences that are zero everywhere are those of a step function,
    such as rounding, whose formula may be a straight-through estimator. For a complex element, both have as real part
    the derivative by its real part, and as imaginary part that by its imaginary part, as torch has it.
    """
    import torch

    from opcheck_suite import compilepairs

    weights = [compilepairs.weights(t) for t in call(*inputs)]

    def loss():
        return sum((t * w).sum().real for t, w in zip(call(*inputs), weights, strict=True))

    def numeric(leaf, index, step):
        sides = []
        for signed in (step, -step):
            with torch.no_grad():
                leaf[index] += signed
            sides.append(float(loss().detach()))
            with torch.no_grad():
                leaf[index] -= signed
        return (sides[0] - sides[1]) / (2 * eps)

    grads = torch.autograd.grad(loss(), inputs, allow_unused=True)
    found = []
    for name, leaf, grad in zip(names, inputs, grads, strict=True):
        if leaf.numel() > 256:
            continue
        grad = torch.zeros_like(leaf) if grad is None else grad
        text, worst, flat = "", 1e-3, True
        for n in range(leaf.numel()):
            index = tuple(int(i) for i in torch.unravel_index(torch.tensor(n), leaf.shape)) if leaf.dim() else ()
            want = numeric(leaf, index, eps)
            if leaf.is_complex():
                want = complex(want, numeric(leaf, index, eps * 1j))
            flat = flat and want == 0
            got = grad[index].item()
            gap = abs(got - want)
            if gap > worst:
                where = f"the gradient of {name!r} is wrong: at {list(index)}"
                text, worst = f"{where} it is {got:.6g}, finite differences give {want:.6g}", gap
                if leaf.is_complex() and abs(got - want.conjugate()) < 1e-3:
                    text += ", its conjugate"
        if text:
            found.append((flat, -worst, text))
    flat, _, text = min(found, default=(False, 0.0, ""))  # what cannot be on purpose comes first
    return text, flat


def _message(text, names):
    """Torch's message, with the argument's name for its number."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    head = lines[0]
    for n, name in enumerate(names):
        head = head.replace(f"with respect to input {n},", f"with respect to {name!r},")
    return "\n".join([head[:300], *lines[1:7]])
