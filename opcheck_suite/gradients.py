"""Forward and backward of an op, for the checks that look at gradients."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import torch

from opcheck_suite import compilepairs
from opcheck_suite.context import Context, OpRaised
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case


@dataclasses.dataclass(frozen=True, eq=False)
class Forward:
    """A forward run that can be differentiated."""

    leaves: dict[str, torch.Tensor]
    """The arguments that require grad."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[Any]

    @property
    def roots(self) -> list[torch.Tensor]:
        """The outputs that require grad."""
        return [t for t in tensors.tensors(self.outputs) if t.requires_grad]

    def backward(self, seeds: list[torch.Tensor], **options: Any) -> dict[str, torch.Tensor | None]:
        """Gradients by argument for given gradients of the roots."""
        names = list(self.leaves)
        found = torch.autograd.grad(self.roots, [self.leaves[n] for n in names], seeds, allow_unused=True, **options)
        return dict(zip(names, found, strict=True))

    def seeds(self) -> list[torch.Tensor]:
        """Packed, uneven gradients for the roots."""
        return [compilepairs.weights(t) for t in self.roots]


#: Words of exceptions that say that there is no gradient, and not that one went wrong.
_REFUSAL = re.compile(
    r"not (yet )?(be )?(implement|support|differentiabl)|unsupported|(doesn't|does not|no) (support|gradient|backward)"
    r"|requires?[ _]grad",
    re.IGNORECASE,
)


def refuses(error: BaseException) -> bool:
    """Whether an exception says that an op has no gradient."""
    return isinstance(error, NotImplementedError) or bool(_REFUSAL.search(str(error)))


def forward(ctx: Context, case: Case, *, only: tuple[str, ...] | None = None, report: bool = False) -> Forward:
    """Run the op with its floating-point arguments (or only some) requiring grad.

    Ends the check where the op refuses the case, where no gradient can be asked for, or where the op raises because of
    the arguments that require grad; that is ``autograd.runs``' to tell, which asks with ``report``.
    """
    ctx.require(case)
    args, kwargs = case.inputs()
    wanted = compilepairs.gradient_leaves(ctx, case)
    leaves = {
        n: t.requires_grad_() for n, t in case.leaves((args, kwargs)) if n in wanted and (only is None or n in only)
    }
    if not leaves:
        ctx.skip("no argument of this sample is a floating-point tensor")
    try:
        out = ctx.call(ctx.info.op, *args, what="the op, with arguments that require grad,", **kwargs)
    except OpRaised:
        if report:
            raise
        ctx.not_exercised("the op raises where arguments require grad: see autograd.runs")
    outputs = tensors.listed(out)
    found = Forward(leaves, args, kwargs, outputs)
    if not found.roots:
        ctx.not_exercised("no output requires grad: see autograd.gradcheck")
    return found


def run(ctx: Context, fn: Callable[..., Any], *args: Any, what: str = "backward") -> Any:
    """Call something of backward; an exception is the op's."""
    return ctx.call(fn, *args, what=what)


def plain(ctx: Context, forward: Forward, seeds: list[torch.Tensor], **options: Any) -> dict[str, torch.Tensor | None]:
    """The gradients for all arguments from all outputs, which a check looks at or compares others with.

    Ends the check where backward raises already here: ``autograd.runs`` reports that.
    """
    try:
        found: dict[str, torch.Tensor | None] = run(ctx, lambda: forward.backward(seeds, **options))
    except OpRaised:
        ctx.not_exercised("backward raises: see autograd.runs")
    return found


def attempt(ctx: Context, case: Case, *, unsure: bool = False) -> dict[str, torch.Tensor | None]:
    """The gradients for all arguments of a variant that forward takes. Where that raises, the op is at fault.

    Not where the exception says that there is no gradient, nor for other sizes, which forward may take by chance:
    without elements, with ``unsure``, or where it tells what arguments must be, that is a warning.
    """
    try:
        run = forward(ctx, case, report=True)
        found: dict[str, torch.Tensor | None] = ctx.call(lambda: run.backward(run.seeds()), what="backward")
    except OpRaised as raised:
        if refuses(raised.error) or case.group in ("ranks", "resized", "large"):
            ctx.skip(f"there is no gradient here: {raised}")
        if unsure or case.group == "empty" or "must" in str(raised.error):
            ctx.warn(f"forward takes this input, and {raised}")
        raise
    return found


def backward_runs(ctx: Context, case: Case) -> None:
    """End the check where the op raises with arguments that require grad, or backward does: `autograd.runs` says so."""

    def attempt() -> str:
        seen = compilepairs.observe(ctx, case, ctx.info.op, gradients=True)
        return "" if seen.error is None else "training through the op raises: see autograd.runs"

    if reason := ctx.memo(("backward runs", case.key), attempt):
        ctx.not_exercised(reason)


def in_float64(ctx: Context, case: Case) -> Case | None:
    """The case with numbers in float64 and complex128, in which finite differences are precise; None if refused."""

    def widened(t: torch.Tensor) -> torch.Tensor:
        if t.is_complex():
            return t.detach().to(torch.complex128)
        return t.detach().double() if t.is_floating_point() else t.detach()

    wide = case.map(widened, variant=f"{case.variant}, float64" if case.variant else "float64", group="float64")
    return wide if ctx.attempt(wide) is not None else None


def nearby(inputs: list[torch.Tensor], distance: float) -> list[torch.Tensor]:
    """Real inputs moved at random by up to half a distance, relative to one more than their size."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for t in inputs:
        noise = torch.rand(t.shape, generator=generator, dtype=torch.float64).to(t) - 0.5
        found.append((t.detach() + distance * (1 + t.detach().abs()) * noise).requires_grad_())
    return found


@dataclasses.dataclass(frozen=True)
class Steps:
    """How far finite differences reach to both sides, and how near to them gradients must be."""

    eps: float
    atol: float
    rtol: float

    def options(self) -> dict[str, float]:
        """The arguments of `torch.autograd.gradcheck`."""
        return dataclasses.asdict(self)


#: For ops that compute in float64 what they are given in it.
EXACT = Steps(1e-6, 1e-5, 1e-3)
#: For ops that compute in a lower precision whatever they are given, and for inputs of one. From the second of these
#: on, what float32 rounds to is no more than a hundredth of what is allowed.
COARSE = Steps(1e-2, 5e-2, 5e-2)
_LADDER = (EXACT, Steps(1e-3, 5e-3, 1e-2), COARSE)


def _ways(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """A direction, the same one for all inputs of these shapes."""
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(t.shape, generator=generator, dtype=torch.float64).to(t) + 0.5 for t in inputs]


def _along(
    call: Callable[..., tuple[torch.Tensor, ...]], inputs: list[torch.Tensor], step: float
) -> list[torch.Tensor]:
    """The finite differences of a function's outputs for a step to both sides in the direction of `_ways`."""
    ways = _ways(inputs)

    def at(step: float) -> list[torch.Tensor]:
        moved = [(t.detach() + step * way).requires_grad_() for t, way in zip(inputs, ways, strict=True)]
        return [t.detach() for t in call(*moved)]

    return [(a - b) / (2 * step) for a, b in zip(at(step), at(-step), strict=True)]


def precise(call: Callable[..., tuple[torch.Tensor, ...]], inputs: list[torch.Tensor], steps: Steps) -> bool:
    """Whether finite differences in one direction are the same for twice the step: whether they are derivatives.

    Where a kernel rounds to float32 or less inside, those of small steps are made of what was rounded off.
    """
    for once, twice in zip(_along(call, inputs, steps.eps), _along(call, inputs, 2 * steps.eps), strict=True):
        if not torch.allclose(once, twice, atol=steps.atol / 10, rtol=steps.rtol / 10, equal_nan=True):
            return False
    return True


def direction(
    loss: Callable[..., torch.Tensor], inputs: list[torch.Tensor], grads: list[torch.Tensor]
) -> tuple[float, float, bool | None]:
    """The derivative of a loss in one direction, by gradients and by finite differences, and whether they agree.

    That is None where finite differences depend on the step, or one of the two is not finite. Steps are small: longer
    ones, as ops need that round to float32, would not tell a kink beside the inputs from a wrong formula.
    """
    terms = [(way * grad).detach().double() for way, grad in zip(_ways(inputs), grads, strict=True)]
    got, scale = sum(float(t.sum()) for t in terms), sum(float(t.abs().sum()) for t in terms)
    (want,), (twice,) = (
        map(float, _along(lambda *at: (loss(*at),), inputs, step)) for step in (EXACT.eps, 2 * EXACT.eps)
    )
    allowed = EXACT.atol + EXACT.rtol * scale
    if abs(want - twice) > allowed / 10 or not math.isfinite(got):
        return got, want, None
    return got, want, abs(got - want) <= allowed


def precise_steps(call: Callable[..., tuple[torch.Tensor, ...]], inputs: list[torch.Tensor]) -> Steps | None:
    """The smallest steps at which finite differences of a function of float64 are `precise`, or None."""
    return next((steps for steps in _LADDER if precise(call, inputs, steps)), None)


Differentiable = tuple[Callable[..., tuple[torch.Tensor, ...]], list[torch.Tensor], list[str]]


def as_function(ctx: Context, case: Case) -> Differentiable:
    """The op as a function of its floating-point arguments alone: the function, values for it, and their names.

    The function returns the outputs that require grad, and draws the same random numbers each time. Ends the check
    where there are no such arguments.
    """
    names = sorted(compilepairs.gradient_leaves(ctx, case))
    if not names:
        ctx.skip("no argument of this sample is a floating-point tensor")

    def call(*leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = case.replace(dict(zip(names, leaves, strict=True)), variant="", group="").raw()
        with ctx.seeded():
            return tuple(t for t in tensors.tensors(ctx.info.op(*args, **kwargs)) if t.requires_grad)

    leaves = dict(case.leaves(case.inputs()))
    return call, [leaves[n].requires_grad_() for n in names], names
