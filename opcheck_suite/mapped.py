"""Calls under vmap, and the loop that they must equal."""

from __future__ import annotations

from typing import Any

import torch

from opcheck_suite.context import Context, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

_BATCH = 3


def leaves(case: Case) -> list[str]:
    """The arguments that can be mapped over: plain tensors that are arguments of their own."""
    bound = case.bound()
    return [n for n, t in case.leaves() if n in bound and tensors.strided(t)]


def choices(names: list[str]) -> list[tuple[tuple[str, ...], bool]]:
    """Which arguments are mapped over, and whether their batch dimension is the last one."""
    found = [(tuple(names), False), (tuple(names), True)]
    if len(names) > 1:
        found += [((name,), False) for name in names]
    return found


def difference(ctx: Context, case: Case, chosen: tuple[str, ...], last: bool) -> str | None:
    """How vmap over the chosen arguments differs from a loop; None if they agree or the op refuses the loop's calls."""
    written = [n for n in ctx.info.mutated if n in case.bound()]
    if any(n not in chosen for n in written):
        return None  # vmap cannot write one tensor from every lane
    lanes = [_lane(case, chosen, number) for number in range(_BATCH)]
    batched = {n: torch.stack([lane[n] for lane in lanes], dim=-1 if last else 0) for n in chosen}
    try:
        expected = [_call(ctx, case, lane) for lane in lanes]
    except Exception:
        return None

    def one(*values: Any) -> Any:
        return _call(ctx, case, dict(zip(chosen, values, strict=True)))

    dims = tuple(-1 if last and batched[n].dim() > 0 else 0 for n in chosen)
    try:
        got = torch.vmap(one, in_dims=dims)(*batched.values())
    except Exception as error:
        return f"it raises {describe_error(error)}, the loop does not"
    wanted = [torch.stack(parts) for parts in zip(*expected, strict=True)]
    return ctx.compare(list(got), wanted)


def _lane(case: Case, chosen: tuple[str, ...], number: int) -> dict[str, torch.Tensor]:
    """One lane's arguments: values that differ between lanes, except integers, which may be positions."""
    found = {}
    for name, t in case.leaves():
        if name in chosen:
            value = t.detach().clone(memory_format=torch.contiguous_format)
            found[name] = value * (1 + number) if value.is_floating_point() or value.is_complex() else value
    return found


def _call(ctx: Context, case: Case, values: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Outputs, then written arguments, tensors only."""
    fresh = case.replace({}, variant="", group="")
    args, kwargs = fresh.inputs()
    bound = fresh.bound(args, kwargs) | values
    names = list(fresh.bound())
    args = tuple(bound[n] for n in names[: len(case.args)])
    kwargs = {n: bound[n] for n in names[len(case.args) :]}
    out = ctx.info.op(*args, **kwargs)
    written = [bound[n] for n in ctx.info.mutated if n in bound]
    return tensors.tensors([out, written])
