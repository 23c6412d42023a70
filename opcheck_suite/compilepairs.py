"""Calls of an op as compile checks make them: as a function of its own, eagerly and compiled, with gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from opcheck_suite import compiling
from opcheck_suite.context import Context, Refused, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

#: By argument.
Gradients = dict[str, torch.Tensor | None]


def ready(ctx: Context, case: Case) -> None:
    """End the check where compiling says nothing new: the op or its fake kernel fails on the case."""
    returns = ctx.info.schema.returns
    if returns and not ctx.info.mutated and not any("Tensor" in str(r.type) for r in returns):
        ctx.skip("torch puts no op into a graph that returns numbers alone")
    tensors_met = tensors.tensors([case.args, case.kwargs, ctx.require(case).outputs])
    if kinds := {compiling.beyond(t) for t in tensors_met} - {""}:
        ctx.skip(f"torch.compile does not take {', '.join(sorted(kinds))} tensors")
    if ctx.require(case).left_behind:
        ctx.not_exercised("the call leaves the process changed: see values.state")
    fake = ctx.fake(case)
    if fake.unsupported:
        ctx.skip(f"fake tensors cannot stand for this input: {fake.unsupported}")
    if fake.error is not None:
        ctx.not_exercised("the fake kernel raises: see fake.runs")


def caller(ctx: Context) -> Callable[..., Any]:
    """A new function that calls the op and nothing else, so that no earlier compilation of it is found."""
    op = ctx.info.op

    def call(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    return call


def graph(ctx: Context, case: Case) -> compiling.Trace:
    """The trace of a call under backend ``eager``, once for all checks. Its ``out`` is an `Outcome`."""

    def make() -> compiling.Trace:
        gradients = bool(eager(ctx, case).gradients)
        trace = compiling.trace(
            caller(ctx), backend="eager", run=lambda fn: observe(ctx, case, fn, gradients=gradients)
        )
        raised = trace.out.error if trace.out is not None else None
        return trace if raised is None else dataclasses.replace(trace, error=raised)

    return ctx.memo(("graph", case.key), make)


def gradient_leaves(ctx: Context, case: Case) -> set[str]:
    """Names of the arguments that gradients are asked for: floating-point ones of a differentiable op that writes
    none.
    """
    if not ctx.differentiable or ctx.info.mutated:
        return set()
    return {n for n, t in case.leaves() if tensors.numeric(t)}


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a caller sees of a call: results (outputs and mutated arguments), and gradients by argument."""

    results: list[Any]
    gradients: Gradients
    error: BaseException | None = None


def observe(
    ctx: Context,
    case: Case,
    fn: Callable[..., Any],
    *,
    gradients: bool,
    prepare: Callable[[dict[str, torch.Tensor]], None] | None = None,
) -> Outcome:
    """Call ``fn`` on fresh copies; with ``gradients``, also run backward from all outputs that require grad.

    ``prepare`` is given the tensors among the arguments by name before the call.
    """
    args, kwargs = case.inputs()
    leaves = dict(case.leaves((args, kwargs)))
    if prepare is not None:
        prepare(leaves)
    wanted = gradient_leaves(ctx, case) if gradients else set()
    for name in wanted:
        leaves[name].requires_grad_()
    try:
        with ctx.seeded():
            out = fn(*args, **kwargs)
        results = case.results(out, leaves.items())
        found = _backward(tensors.listed(out), {n: leaves[n] for n in wanted})
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return Outcome([], {}, error)
    detached = tensors.map_tensors(lambda t: t.detach(), results)
    return Outcome(detached, found)


def _backward(outputs: list[Any], leaves: dict[str, torch.Tensor]) -> Gradients:
    """Gradients of a fixed, uneven weighting of the outputs: a plain sum would hide which element each belongs to."""
    roots = [t for t in tensors.tensors(outputs) if t.requires_grad]
    if not roots or not leaves:
        return {}
    seeds = [weights(t) for t in roots]
    names = list(leaves)
    grads = torch.autograd.grad(roots, [leaves[n] for n in names], seeds, allow_unused=True)
    return dict(zip(names, grads, strict=True))


def weights(like: torch.Tensor) -> torch.Tensor:
    """A gradient for an output in which no two neighbours are equal."""
    count = like.numel()
    values = torch.linspace(0.5, 1.5, max(count, 1), dtype=torch.float64)[:count]
    return values.reshape(like.shape).to(device=like.device, dtype=like.dtype)


def eager(ctx: Context, case: Case) -> Outcome:
    """What eager shows of a case, with gradients, once for all backends."""

    def make() -> Outcome:
        seen = observe(ctx, case, ctx.info.op, gradients=True)
        if seen.error is not None and gradient_leaves(ctx, case):
            return observe(ctx, case, ctx.info.op, gradients=False)
        return seen

    seen = ctx.memo(("observed", case.key), make)
    if seen.error is not None:
        raise Refused(describe_error(seen.error))
    return seen


def other_gradient(ctx: Context, got: Gradients, expected: Gradients, *, coarse: Any = None) -> str | None:
    """How gradients by argument differ, in words; None when they do not. No gradient is as good as zeros."""
    for name, grad in expected.items():
        mine = got.get(name)
        if mine is None and grad is not None:
            mine = torch.zeros_like(grad)
        elif mine is not None and grad is None:
            grad = torch.zeros_like(mine)
        if text := ctx.compare([mine], [grad], names=f"the gradient of {name!r}", coarse=coarse):
            return text
    return None
