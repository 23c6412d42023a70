"""Content variants: other values of the same shape and dtype."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from opcheck_suite.inputs import relations
from opcheck_suite.inputs.cases import Case
from opcheck_suite.inputs.dtypes import floating
from opcheck_suite.inputs.variants import variant


@variant("content", tier="standard")
def _plain(case: Case) -> Iterator[Case]:
    """Values that data-dependent ops treat differently: none, all, the opposite."""
    chosen = floating(case)
    if chosen:
        # floating-point arguments may hold positions, such as the number of an image in a box
        case = dataclasses.replace(case, uncertain=len(chosen) > 1)
        yield case.replace({n: -t.detach().abs() - 1 for n, t in chosen}, variant="all negative", group="content")
        yield case.replace({n: t.detach().abs() + 1 for n, t in chosen}, variant="all positive", group="content")
        yield case.replace({n: torch.zeros_like(t) for n, t in chosen}, variant="all zero", group="content")


@variant("content", tier="standard")
def _one_group(case: Case) -> Iterator[Case]:
    """All rows in the first of the groups that an integer for each row puts them in, so that others have no member.

    Each of these integers was there before, several times, so that it is valid again. Where others could have to agree
    with it, there is no such case.
    """
    leaves = dict(case.leaves())
    found = relations.kinds(case)
    rows = {t.shape[0] for t in leaves.values() if t.dim() and t.is_floating_point()}
    if list(found.values()) != [relations.Kind.POSITIONS]:
        return
    (name,) = found
    given = leaves[name].detach()
    values = given.reshape(-1).tolist()
    if given.dim() == 1 and not case.writes(name) and len(values) in rows and 1 < len(set(values)) < len(values):
        changed = torch.full_like(given, min(values), memory_format=torch.contiguous_format)
        yield case.replace({name: changed}, variant=f"one group({name})", group="content")


@variant("special", tier="standard")
def _special(case: Case) -> Iterator[Case]:
    """NaN and infinities in one argument, a whole row of negative infinity, and large values in half precision."""
    for name, t in floating(case):
        if not t.numel():
            continue
        poked = t.detach().clone()
        flat = poked.view(-1) if poked.is_contiguous() else poked.reshape(-1)
        flat[0] = float("nan")
        if flat.numel() > 2:
            flat[flat.numel() // 2] = float("inf")
        yield case.replace({name: flat.view(t.shape)}, variant=f"NaN and inf({name})", group="special")
        if t.dim():
            row = t.detach().clone()
            row[0] = -torch.inf
            yield case.replace({name: row}, variant=f"a row of -inf({name})", group="special")
        halves = {n: other.detach().half() for n, other in floating(case)}
        halves[name] = (t.detach().sign() * 300).half()
        yield case.replace(dict(halves), variant=f"float16 beyond 256({name})", group="special")


@variant("indices")
def _out_of_range(case: Case) -> Iterator[Case]:
    """One integer argument with a position beyond every size of the other arguments."""
    leaves = case.leaves()
    for name, t in leaves:
        others = [other for n, other in leaves if n != name and other.is_floating_point()]
        if t.dtype not in (torch.int32, torch.int64) or not t.numel() or not others:
            continue
        beyond = max([max(other.shape, default=1) for other in others]) + 1
        poked = t.detach().clone(memory_format=torch.contiguous_format)
        poked.view(-1)[-1] = beyond
        yield case.replace({name: poked}, variant=f"an index of {beyond}({name})", group="indices")
