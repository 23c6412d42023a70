"""Calls under vmap, and the loop that they must equal."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch

from opcheck_suite.context import Context, describe_error
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case

_BATCH = 3

#: So many seeds are tried before lanes that are equal in all of them are no chance any more.
_SEEDS = 8

#: Which arguments are mapped over, and whether their batch dimension is the last one.
Choice = tuple[tuple[str, ...], bool]


def leaves(case: Case) -> list[str]:
    """The arguments that can be mapped over: plain tensors, alone or in lists."""
    return [n for n, t in case.leaves() if tensors.strided(t)]


def choices(names: list[str]) -> list[Choice]:
    """Which arguments are mapped over, and how. Of a list, the first and the last member stand for all that are mapped
    over alone.
    """
    found = [(tuple(names), False), (tuple(names), True)]
    if len(names) > 1:
        members = [list(group) for _, group in itertools.groupby(names, lambda n: n.partition("[")[0])]
        alone = dict.fromkeys(name for group in members for name in (group[0], group[-1]))
        found += [((name,), False) for name in alone]
    return found


def difference(ctx: Context, case: Case, chosen: tuple[str, ...], last: bool) -> str | None:
    """How vmap over the chosen arguments differs from a loop; None if they agree or the op refuses the loop's calls."""
    if _writes_others(case, chosen):
        return None  # vmap cannot write one tensor from every lane
    lanes = [_lane(case, chosen, number) for number in range(_BATCH)]
    try:
        expected = [_call(ctx, case, {n: t.clone() for n, t in lane.items()}) for lane in lanes]
    except Exception:
        return None
    try:
        got = _mapped(ctx, case, lanes, last=last)
    except Exception as error:
        return f"it raises {describe_error(error)}, the loop does not"
    wanted = [torch.stack(parts) for parts in zip(*expected, strict=True)]
    return ctx.compare(got, wanted)


def drawn_from_torch(ctx: Context, case: Case) -> list[list[torch.Tensor]] | None:
    """One call of a random op for each of several seeds of torch's generators; None where these decide nothing.

    That is so where one seed gives two results, or all seeds the same but for a few, or the results' shapes are random.
    """
    names = tuple(leaves(case))

    def draw(seed: int) -> list[torch.Tensor]:
        with _torch_seeded(ctx, seed):
            return _call(ctx, case, _lane(case, names, 0))

    drawn = [draw(seed) for seed in range(_SEEDS)]
    if not _same(drawn[0], draw(0)):
        return None
    shapes = {tuple((t.shape, t.dtype) for t in one) for one in drawn}
    others = sum(not _same(a, b) for a, b in itertools.pairwise(drawn))
    return drawn if len(shapes) == 1 and others > _SEEDS // 2 else None


def random_difference(
    ctx: Context, case: Case, chosen: tuple[str, ...], last: bool, mode: str, one: list[torch.Tensor]
) -> str | None:
    """Which promise of vmap with ``randomness`` "same" or "different" is not kept for a batch of equal elements.

    ``one`` is the result of a single call. None where the promise is kept. Raises `Refuses` where the rule raises.
    """
    if _writes_others(case, chosen):
        return None
    lane = _lane(case, chosen, 0)
    for seed in range(_SEEDS if mode == "different" else _SEEDS // 2):
        try:
            with _torch_seeded(ctx, seed):
                got = _mapped(ctx, case, [lane] * _BATCH, last=last, randomness=mode)
        except Exception as error:
            raise Refuses(describe_error(error)) from error
        if len(got) != len(one):
            return f"it gives {len(got)} tensors, expected {len(one)}"
        for n, (t, single) in enumerate(zip(got, one, strict=True)):
            if (t.dtype, t.shape) != (single.dtype, (_BATCH, *single.shape)):
                name = f"output {n}" if len(one) > 1 else "the output"
                return f"{name} is {tensors.describe(t)}, expected {_BATCH} of {tensors.describe(single)}"
        first, *others = ([t[k] for t in got] for k in range(_BATCH))
        if mode == "different" and not all(_same(first, other) for other in others):
            return None
        for k, other in enumerate(others, 1):
            if mode == "same" and (text := ctx.compare(other, first)):
                return f"equal elements 0 and {k} of the batch get different random numbers: {text}"
    if mode == "different":
        return f"equal elements of the batch all get the same random numbers, with each of {_SEEDS} seeds"
    return None


class Refuses(Exception):
    """The batching rule raises in a mode of randomness."""


def _same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.equal(x.nan_to_num(), y.nan_to_num())
        for x, y in zip(a, b, strict=True)
    )


@contextlib.contextmanager
def _torch_seeded(ctx: Context, seed: int) -> Iterator[None]:
    """Seed torch's generators with ``seed``, and others as ever: vmap's flag is for torch's random numbers only."""
    with ctx.seeded(seed):
        random.seed(ctx.seed)
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(ctx.seed)
        yield


def _writes_others(case: Case, chosen: tuple[str, ...]) -> bool:
    return any(case.writes(n) and n not in chosen for n, _ in case.leaves())


def _lane(case: Case, chosen: tuple[str, ...], number: int) -> dict[str, torch.Tensor]:
    """One lane's arguments: values that differ between lanes, except integers, which may be positions."""
    found = {}
    for name, t in case.leaves():
        if name in chosen:
            value = t.detach().clone(memory_format=torch.contiguous_format)
            found[name] = value * (1 + number) if value.is_floating_point() or value.is_complex() else value
    return found


def _mapped(
    ctx: Context, case: Case, lanes: list[dict[str, torch.Tensor]], *, last: bool = False, randomness: str = "error"
) -> list[torch.Tensor]:
    """What `_call` gives under vmap over the lanes."""
    names = list(lanes[0])
    batched = {n: torch.stack([lane[n] for lane in lanes], dim=-1 if last else 0) for n in names}

    def one(*values: Any) -> Any:
        return _call(ctx, case, dict(zip(names, values, strict=True)))

    dims = tuple(-1 if last and batched[n].dim() > 0 else 0 for n in names)
    return list(torch.vmap(one, in_dims=dims, randomness=randomness)(*batched.values()))


def _call(ctx: Context, case: Case, values: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Outputs, then written arguments, tensors only."""
    args, kwargs = case.inputs()
    called = dataclasses.replace(case, args=args, kwargs=kwargs).replace(dict(values), variant="", group="")
    args, kwargs = called.raw()
    out = ctx.info.op(*args, **kwargs)
    return tensors.tensors(case.results(out, called.leaves()))
