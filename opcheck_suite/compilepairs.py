"""Calls of an op as compile checks make them: as a function of its own, eagerly and compiled, with gradients."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch

from opcheck_suite import compiling
from opcheck_suite.context import Context, Refused, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case


def ready(ctx: Context, case: Case) -> None:
    """End the check where compiling says nothing new: the op or its fake kernel fails on the case."""
    ctx.require(case)
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
    """The trace of a call under backend ``eager``, once for all checks."""

    def make() -> compiling.Trace:
        args, kwargs = case.inputs()
        with ctx.seeded():
            return compiling.trace(caller(ctx), *args, backend="eager", kwargs=kwargs)

    return ctx.memo(("graph", case.key), make)


def gradient_leaves(ctx: Context, case: Case) -> set[str]:
    """Names of the arguments that gradients are asked for: floating-point ones of a differentiable op that writes
    none.
    """
    if not ctx.differentiable or ctx.info.mutated:
        return set()
    return {n for n, t in case.leaves() if tensors.strided(t) and (t.is_floating_point() or t.is_complex())}


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a caller sees of a call: results (outputs and mutated arguments), and gradients by argument."""

    results: list[Any]
    gradients: dict[str, torch.Tensor | None]
    error: BaseException | None = None


def observe(ctx: Context, case: Case, fn: Callable[..., Any], *, gradients: bool) -> Outcome:
    """Call ``fn`` on fresh copies; with ``gradients``, also run backward from all outputs that require grad."""
    args, kwargs = case.inputs()
    leaves = dict(case.leaves((args, kwargs)))
    wanted = gradient_leaves(ctx, case) if gradients else set()
    for name in wanted:
        leaves[name].requires_grad_()
    written = set(ctx.info.mutated)
    try:
        with ctx.seeded():
            out = fn(*args, **kwargs)
        outputs = [] if out is None else list(out) if isinstance(out, tuple) else [out]
        results = [*outputs, *(t for n, t in leaves.items() if n.partition("[")[0] in written)]
        found = _backward(outputs, {n: leaves[n] for n in wanted})
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return Outcome([], {}, error)
    detached = tensors.map_tensors(lambda t: t.detach(), results)
    return Outcome(detached, found)


def _backward(outputs: list[Any], leaves: dict[str, torch.Tensor]) -> dict[str, torch.Tensor | None]:
    """Gradients of a fixed, uneven weighting of the outputs: a plain sum would hide which element each belongs to."""
    roots = [t for t in tensors.tensors(outputs) if t.requires_grad]
    if not roots or not leaves:
        return {}
    seeds = [_weights(t) for t in roots]
    names = list(leaves)
    grads = torch.autograd.grad(roots, [leaves[n] for n in names], seeds, allow_unused=True)
    return dict(zip(names, grads, strict=True))


def _weights(like: torch.Tensor) -> torch.Tensor:
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


@contextlib.contextmanager
def compiled(ctx: Context, backend: str, *, fullgraph: bool = True) -> Iterator[Callable[..., Any]]:
    """The op compiled alone with a backend, in clean caches."""
    torch._dynamo.reset()
    with compiling.settings():
        try:
            yield torch.compile(caller(ctx), backend=backend, fullgraph=fullgraph)
        finally:
            torch._dynamo.reset()
